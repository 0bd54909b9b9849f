//! Sub-agents: the begin of one, in one transaction with the call that starts it (D3), and the end of one whose
//! workflow is gone.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use everturn_proto::{
    ids,
    turn::{AgentDefinition, SaveEnd, SaveObserve, SaveRequest, SaveSubAgent, save_request},
    words::{execution_status, failure, tool_kind, tool_status},
};

use super::{
    Connection,
    begin::{encode, insert_definition},
    claims::{claim_tool, finish_tool},
    dialect::sql_error,
    lock::lock_conversation,
    save,
    write::write_batch,
};
use crate::{
    api::{BegunTurn, Result, ToolClaim, ToolEnd, ToolKey, ToolRecord},
    batch::{self, Snapshot, Task, ToolRow},
    error::StoreError,
    rows::{BegunRow, DelegatorRow, narrow, now},
    sql,
};

pub(super) async fn begin_sub_agent(
    connection: &mut Connection,
    call: &ToolKey,
    agents: &BTreeMap<String, AgentDefinition>,
) -> Result<BegunTurn> {
    let last_sequence = lock_conversation(connection, &call.conversation_id).await?;
    let last_sequence = last_sequence
        .ok_or_else(|| StoreError::not_found("conversation", &call.conversation_id))?;
    let id = ids::sub_agent_execution_id(&call.conversation_id, &call.execution_id);
    let begun: Option<BegunRow> = sqlx::query_as(sql::BEGUN_SUB_AGENT)
        .bind(&id)
        .bind(&call.conversation_id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(sql_error)?;
    if let Some(begun) = begun {
        return Ok(begun.begun(last_sequence));
    }
    let record = match claim_tool(connection, call, &id).await? {
        ToolClaim::Run(record) => record,
        ToolClaim::Ended(record) => return Ok(not_begun(&record.status, last_sequence)),
        ToolClaim::OutcomeUnknown(_) => {
            return Err(StoreError::Conflict(format!(
                "tool execution `{}` may not run",
                call.execution_id
            )));
        }
    };
    let delegator = delegator(connection, call).await?;
    let Task { agent, task } = match batch::task(&record.call, &delegator.delegator()?, agents) {
        Ok(task) => task,
        Err(refusal) => {
            let stored = finish_tool(connection, call, ToolEnd::failed(&refusal, 0)).await?;
            return Ok(not_begun(&stored.status, last_sequence));
        }
    };
    let depth = delegator.delegator()?.depth + 1;
    let start = start_request(call, &id, &record, &agent.name, task, depth);
    let now = now();
    let snapshot = Snapshot {
        last_sequence,
        now,
        ..Snapshot::default()
    };
    let batch = batch::build(&start, &snapshot)?;
    let agent_hash = ids::definition_hash(&encode(&agent)?);
    insert_definition(connection, &agent_hash, &agent).await?;
    sqlx::query(sql::INSERT_SUB_AGENT)
        .bind(&id)
        .bind(&call.conversation_id)
        .bind(&call.message_id)
        .bind(&call.agent_execution_id)
        .bind(&delegator.root_execution_id)
        .bind(i64::from(depth))
        .bind(&record.call.call_id)
        .bind(&agent.name)
        .bind(&agent_hash)
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(sql_error)?;
    write_batch(connection, &start, &batch, now).await?;
    let status = execution_status::RUNNING.to_owned();
    let (sealed, age) = (Vec::new(), Duration::ZERO);
    Ok(BegunTurn {
        status,
        agent,
        agent_hash,
        last_sequence: batch.last_sequence,
        sealed,
        age,
    })
}

async fn delegator(connection: &mut Connection, call: &ToolKey) -> Result<DelegatorRow> {
    let row: Option<DelegatorRow> = sqlx::query_as(sql::DELEGATOR)
        .bind(&call.agent_execution_id)
        .bind(&call.conversation_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    row.ok_or_else(|| StoreError::not_found("agent execution", &call.agent_execution_id))
}

fn start_request(
    call: &ToolKey,
    id: &str,
    record: &ToolRecord,
    agent: &str,
    task: String,
    depth: u32,
) -> SaveRequest {
    let start = SaveSubAgent {
        agent: agent.to_owned(),
        task,
        parent_execution_id: call.agent_execution_id.clone(),
        execution_id: call.execution_id.clone(),
        call_id: record.call.call_id.clone(),
        depth,
    };
    SaveRequest {
        conversation_id: call.conversation_id.clone(),
        message_id: call.message_id.clone(),
        agent_execution_id: id.to_owned(),
        step: 0,
        batch: Some(save_request::Batch::SubAgent(start)),
    }
}

/// The answer to a call that has no sub-agent and has ended.
fn not_begun(tool_status: &str, last_sequence: u32) -> BegunTurn {
    let status = if tool_status == tool_status::CANCELLED {
        execution_status::CANCELLED
    } else {
        execution_status::FAILED
    };
    BegunTurn {
        status: status.to_owned(),
        agent: AgentDefinition::default(),
        agent_hash: String::new(),
        last_sequence,
        sealed: Vec::new(),
        age: Duration::ZERO,
    }
}

/// What the ends of lost sub-agents left.
pub(super) struct Lost {
    pub(super) last_sequence: u32,
    pub(super) sealed: Vec<(String, u32)>,
}

/// Ends the sub-agents whose calls `request` closes and that still say they run: their workflows are gone, because a
/// parent waits for its sub-agents. Their own sub-agents end with them. Costs nothing unless a `delegate` call has
/// begun and not ended.
pub(super) fn end_lost<'a>(
    connection: &'a mut Connection,
    request: &'a SaveRequest,
    tools: &'a [ToolRow],
    last_sequence: u32,
) -> Pin<Box<dyn Future<Output = Result<Lost>> + Send + 'a>> {
    Box::pin(async move {
        let mut lost = Lost {
            last_sequence,
            sealed: Vec::new(),
        };
        let is_open = |tool: &&ToolRow| {
            tool.record.call.kind == tool_kind::DELEGATE
                && tool.record.status == tool_status::RUNNING
        };
        for tool in tools.iter().filter(is_open) {
            let mut end = lost_request(request, &tool.record.call.execution_id);
            let state = save::find_state(connection, &end, &batch::key(&end)?).await?;
            let Some(state) = state.filter(|state| state.status == execution_status::RUNNING)
            else {
                continue;
            };
            // The step behind those that were saved is the one that may have left a text.
            end.step = narrow(state.steps)?;
            let ended = save::append(connection, &end, lost.last_sequence, end.step).await?;
            lost.last_sequence = ended.result.last_sequence;
            lost.sealed.extend(ended.sealed);
        }
        Ok(lost)
    })
}

/// The end of a sub-agent that is lost: cancelled with its parent, else failed.
fn lost_request(parent: &SaveRequest, execution_id: &str) -> SaveRequest {
    let (status, code, message) = match &parent.batch {
        Some(save_request::Batch::End(SaveEnd {
            status, message, ..
        })) if status == execution_status::CANCELLED => {
            (execution_status::CANCELLED, None, message.clone())
        }
        Some(save_request::Batch::Observe(SaveObserve {
            failure: Some(failure),
            ..
        })) => (
            execution_status::FAILED,
            Some(failure::SUB_AGENT_LOST.to_owned()),
            Some(failure.clone()),
        ),
        _ => (
            execution_status::FAILED,
            Some(failure::SUB_AGENT_LOST.to_owned()),
            Some("The sub-agent was stopped from outside.".to_owned()),
        ),
    };
    let end = SaveEnd {
        status: status.to_owned(),
        code,
        message,
    };
    SaveRequest {
        conversation_id: parent.conversation_id.clone(),
        message_id: parent.message_id.clone(),
        agent_execution_id: ids::sub_agent_execution_id(&parent.conversation_id, execution_id),
        step: 0,
        batch: Some(save_request::Batch::End(end)),
    }
}
