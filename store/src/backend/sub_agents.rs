//! Begins a sub-agent. A single transaction also claims the `delegate` call.

use std::{collections::BTreeMap, time::Duration};

use everturn_proto::{
    ids,
    turn::{AgentDefinition, SaveSubAgent},
    words::{AgentExecutionStatus, ToolStatus},
};

use super::{
    Connection,
    claims::{claim_tool, finish_tool},
    definitions,
    dialect::Parts,
    lock::{LockedConversation, lock_known},
    runs,
    statement::Statement as _,
    statements::agent_executions::{BegunSubAgent, Delegator, InsertSubAgent},
    write,
};
use crate::{
    api::{
        BegunTurn, OnUnknownAgent, PinnedAgent, Result, StepKey, ToolClaim, ToolEnd, ToolKey,
        ToolRecord,
    },
    batch::{self, BatchRequest, Refusal, Save, Snapshot, Task},
    columns::now,
    error::{Missing, StoreError},
    rows::turns::{BegunRow, DelegatorRow},
};

pub(super) async fn begin_sub_agent(
    connection: &mut Connection,
    call: &ToolKey,
    agents: &BTreeMap<String, AgentDefinition>,
    on_unknown: OnUnknownAgent,
) -> Result<BegunTurn> {
    let conversation = lock_known(connection, &call.conversation_id).await?;
    runs::check(&conversation, &call.conversation_id, call.epoch)?;
    let epoch = call.epoch.unwrap_or_default();
    let id = ids::sub_agent_execution_id(&call.conversation_id, &call.execution_id);
    let select = BegunSubAgent {
        agent_execution_id: &id,
        conversation_id: &call.conversation_id,
        now: now(),
    };
    let begun: Option<BegunRow> = select.query_as()?.fetch_optional(&mut *connection).await?;
    if let Some(begun) = begun {
        return Ok(begun.begun(conversation.log_id, conversation.last_sequence, epoch));
    }
    let record = match claim_tool(connection, call, &id).await? {
        ToolClaim::Run { record, .. } => record,
        ToolClaim::Ended(record) => {
            return Ok(not_begun(&record.status, conversation, epoch));
        }
        // A `delegate` call asks nobody itself.
        ToolClaim::OutcomeUnknown { .. } | ToolClaim::Asks(_) => {
            let id = &call.execution_id;
            let message = format!("tool execution `{id}` may not run");
            return Err(StoreError::Conflict(message));
        }
    };
    let delegator = find_delegator(connection, call).await?;
    let tenant_id = &conversation.tenant_id;
    match batch::task(&record.call, &delegator.delegator(), agents, tenant_id) {
        Ok(task) => start(connection, call, &record, &delegator, task, conversation).await,
        // The claim is rolled back with the transaction.
        Err(Refusal::UnknownAgent(name)) if on_unknown == OnUnknownAgent::Refuse => {
            Err(StoreError::not_found(Missing::Agent, name))
        }
        Err(refusal) => {
            let end = ToolEnd::failed(&refusal.sentence(), 0);
            let stored = finish_tool(connection, call, end).await?;
            Ok(not_begun(&stored.status, conversation, epoch))
        }
    }
}

/// Writes the sub-agent's definition, agent execution and first batch.
async fn start(
    connection: &mut Connection,
    call: &ToolKey,
    record: &ToolRecord,
    delegator: &DelegatorRow,
    task: Task,
    conversation: LockedConversation,
) -> Result<BegunTurn> {
    let (agent, now) = (task.agent, now());
    let depth = delegator.delegator().depth + 1;
    let start = SaveSubAgent {
        agent: agent.name.clone(),
        task: task.task,
        parent_execution_id: call.agent_execution_id.clone(),
        execution_id: call.execution_id.clone(),
        call_id: record.call.call_id.clone(),
        depth,
    };
    let request = BatchRequest {
        step: StepKey {
            agent_execution_id: ids::sub_agent_execution_id(
                &call.conversation_id,
                &call.execution_id,
            ),
            step: 0,
            ..call.step_key()
        },
        save: Save::SubAgentStart(start),
    };
    let snapshot = Snapshot {
        last_sequence: conversation.last_sequence,
        now,
        ..Snapshot::default()
    };
    let batch = batch::build(&request, &snapshot)?;
    let agent_hash = definitions::hash(&agent)?;
    let mut parts = Parts::default();
    definitions::insert(&mut parts, &agent_hash, &agent);
    parts.add(InsertSubAgent {
        agent_execution_id: &request.step.agent_execution_id,
        conversation_id: &call.conversation_id,
        message_id: &call.message_id,
        agent: &agent.name,
        agent_hash: &agent_hash,
        now,
        status_running: AgentExecutionStatus::Running.as_str(),
        parent_execution_id: &call.agent_execution_id,
        root_execution_id: &delegator.root_execution_id,
        depth: i64::from(depth),
        parent_tool_call_id: &record.call.call_id,
    });
    write::batch(&mut parts, &request, &batch, now);
    // Lists show no change: the turn of the sub-agent runs already.
    write::advance_conversation(&mut parts, &request.step, &batch, now);
    parts.execute(connection).await?;
    let agent = PinnedAgent {
        definition: agent,
        hash: agent_hash,
    };
    let (epoch, log_id) = (call.epoch.unwrap_or_default(), conversation.log_id);
    Ok(BegunTurn::now(agent, epoch, log_id, batch.last_sequence))
}

async fn find_delegator(connection: &mut Connection, call: &ToolKey) -> Result<DelegatorRow> {
    let select = Delegator {
        agent_execution_id: &call.agent_execution_id,
        conversation_id: &call.conversation_id,
    };
    let row: Option<DelegatorRow> = select.query_as()?.fetch_optional(connection).await?;
    row.ok_or_else(|| StoreError::not_found(Missing::AgentExecution, &call.agent_execution_id))
}

/// Returns the answer for a call that has ended without a sub-agent.
fn not_begun(call_status: &ToolStatus, conversation: LockedConversation, epoch: u32) -> BegunTurn {
    let status = if *call_status == ToolStatus::Cancelled {
        AgentExecutionStatus::Cancelled
    } else {
        AgentExecutionStatus::Failed
    };
    BegunTurn {
        status,
        agent: None,
        epoch,
        log_id: conversation.log_id,
        last_sequence: conversation.last_sequence,
        sealed: Vec::new(),
        age: Duration::ZERO,
        is_new: false,
        cancel_reason: None,
    }
}
