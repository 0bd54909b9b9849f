//! Loads the snapshot of a batch, as `batch::needs` demands.

use std::collections::BTreeSet;

use everturn_proto::{event::WorkPlan, ids, turn::ToolCall, words::CheckpointType};

use super::{
    Connection,
    checkpoints::load_checkpoint,
    statement::Statement as _,
    statements::{
        agent_executions::Parent,
        checkpoints::Totals,
        messages::{AssistantRows, UserMessage},
        plans::Plans,
        tools::{self, OpenTools, Recorded, ToolToObserve},
    },
};
use crate::{
    api::{Result, StepKey},
    batch::{
        self, AssistantRow, BatchRequest, DelegateCall, Snapshot, StoredMessage, ToolRow,
        ToolsNeeded,
    },
    rows::{
        tools::PlanRow,
        turns::{ParentRow, UserMessageRow},
    },
};

/// Loads the snapshot without `last_sequence` and `steps`. The caller has both from the lock.
pub(super) async fn load(connection: &mut Connection, request: &BatchRequest) -> Result<Snapshot> {
    let needs = batch::needs(request);
    let mut snapshot = Snapshot::default();
    let step = &request.step;
    if needs.partial {
        let partial = load_checkpoint(connection, step, CheckpointType::LlmPartial);
        snapshot.partial = partial.await?;
    }
    if needs.totals {
        let totals = Totals {
            agent_execution_id: &step.agent_execution_id,
            type_llm_complete: CheckpointType::LlmComplete.as_str(),
        };
        snapshot.totals = totals.query_as()?.fetch_one(&mut *connection).await?;
    }
    if let Some(message_id) = &needs.message {
        let row = load_message(connection, &step.conversation_id, message_id).await?;
        // A message that was cancelled after the run's look joins no turn: a turn of its own reports the cancel.
        snapshot.message = row.map(|row| StoredMessage {
            is_waiting: row.message.is_waiting && row.cancel_reason.is_none(),
            ..row.message
        });
    }
    if let Some(sub_agent) = &needs.delegate_call {
        snapshot.delegate_call = load_delegate_call(connection, step, sub_agent).await?;
    }
    snapshot.tools = load_tools(connection, step, &needs.tools).await?;
    if needs.checkpoint {
        let complete = load_checkpoint(connection, step, CheckpointType::LlmComplete);
        snapshot.checkpoint = complete.await?;
    }
    // A missing record is rebuilt from the assistant's row.
    let is_lost = matches!(needs.tools, ToolsNeeded::One(_)) && snapshot.tools.is_empty();
    let own_step = (needs.checkpoint || is_lost).then_some(step.step);
    let steps = snapshot.tools.iter().map(|tool| tool.step);
    let steps = steps.chain(own_step).collect();
    snapshot.assistants = load_assistants(connection, step, steps).await?;
    if needs.tools == ToolsNeeded::Open {
        snapshot.recorded = load_recorded(connection, step, &snapshot.assistants).await?;
    }
    snapshot.plans = load_plans(connection, step, &snapshot.tools).await?;
    Ok(snapshot)
}

/// Reads a user's message.
pub(super) async fn load_message(
    connection: &mut Connection,
    conversation_id: &str,
    message_id: &str,
) -> Result<Option<UserMessageRow>> {
    let message = UserMessage {
        conversation_id,
        message_id,
    };
    Ok(message.query_as()?.fetch_optional(connection).await?)
}

async fn load_tools(
    connection: &mut Connection,
    step: &StepKey,
    needed: &ToolsNeeded,
) -> Result<Vec<ToolRow>> {
    let query = match needed {
        ToolsNeeded::None => return Ok(Vec::new()),
        ToolsNeeded::Open => OpenTools {
            agent_execution_id: &step.agent_execution_id,
        }
        .query_as()?,
        ToolsNeeded::One(execution_id) => ToolToObserve {
            conversation_id: &step.conversation_id,
            agent_execution_id: &step.agent_execution_id,
            execution_id,
        }
        .query_as()?,
    };
    Ok(query.fetch_all(connection).await?)
}

/// Reads the call that started a sub-agent. A missing record is rebuilt from the row of the step that asked for the
/// call.
async fn load_delegate_call(
    connection: &mut Connection,
    step: &StepKey,
    sub_agent: &str,
) -> Result<Option<DelegateCall>> {
    let select = tools::DelegateCall {
        conversation_id: &step.conversation_id,
        sub_agent,
    };
    let query = select.query_as()?;
    let call: Option<DelegateCall> = query.fetch_optional(&mut *connection).await?;
    if call.is_some() {
        return Ok(call);
    }
    let parent = Parent {
        agent_execution_id: sub_agent,
        conversation_id: &step.conversation_id,
    };
    let parent: Option<ParentRow> = parent.query_as()?.fetch_optional(&mut *connection).await?;
    let Some(parent) = parent else {
        return Ok(None);
    };
    let asked_by = StepKey {
        agent_execution_id: parent.parent_execution_id,
        step: parent.steps.saturating_sub(1),
        ..step.clone()
    };
    let asked = load_assistants(connection, &asked_by, [asked_by.step].into()).await?;
    let is_wanted = |call: &ToolCall| {
        sub_agent == ids::sub_agent_execution_id(&step.conversation_id, &call.execution_id)
    };
    let tool = asked.iter().find_map(|row| row.record_of(is_wanted));
    Ok(tool.map(|tool| DelegateCall {
        asked_by: asked_by.agent_execution_id.clone(),
        started_at: Some(parent.started_at),
        tool,
        missing_of: Some(asked_by),
    }))
}

/// Reads the assistant rows of the given steps.
pub(super) async fn load_assistants(
    connection: &mut Connection,
    step: &StepKey,
    steps: BTreeSet<u32>,
) -> Result<Vec<AssistantRow>> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let row_id = |number| ids::assistant_message_id(&step.agent_execution_id, number);
    let row_ids: Vec<_> = steps.into_iter().map(row_id).collect();
    let rows = AssistantRows {
        conversation_id: &step.conversation_id,
        message_ids: &row_ids,
    };
    Ok(rows.query_as()?.fetch_all(connection).await?)
}

/// Reads which calls of the request's step have a record. A step without calls needs no query.
async fn load_recorded(
    connection: &mut Connection,
    step: &StepKey,
    assistants: &[AssistantRow],
) -> Result<BTreeSet<String>> {
    let rows = assistants.iter().filter(|row| row.step == step.step);
    let calls = rows.flat_map(|row| &row.tool_calls);
    let ids: Vec<_> = calls.map(|call| call.execution_id.clone()).collect();
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let recorded = Recorded {
        conversation_id: &step.conversation_id,
        execution_ids: &ids,
    };
    let found: Vec<String> = recorded.query_scalar()?.fetch_all(connection).await?;
    Ok(found.into_iter().collect())
}

/// Reads the plans that the tools' own events change.
async fn load_plans(
    connection: &mut Connection,
    step: &StepKey,
    tools: &[ToolRow],
) -> Result<Vec<WorkPlan>> {
    let plan_ids: BTreeSet<String> = tools.iter().flat_map(ToolRow::changed_plans).collect();
    if plan_ids.is_empty() {
        return Ok(Vec::new());
    }
    let plan_ids: Vec<_> = plan_ids.into_iter().collect();
    let plans = Plans {
        conversation_id: &step.conversation_id,
        plan_ids: &plan_ids,
    };
    let rows: Vec<PlanRow> = plans.query_as()?.fetch_all(connection).await?;
    Ok(rows.into_iter().map(WorkPlan::from).collect())
}
