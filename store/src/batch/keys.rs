//! The keys of batches. A key names a role in the turn, never a counter or a run id. Therefore a replayed save keeps
//! its key even if a newer signal came before (invariant 3, idempotent saves).

use everturn_proto::words::CheckpointType;
use uuid::Uuid;

use super::{BatchRequest, Save};
use crate::api::StepKey;

/// Namespace of event ids. Never change the namespace, because stored batches would no longer be recognised.
const EVENT_NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_3c0a_52c8_5b7e_9a41_e0d7_4b86_20f3);

/// Namespace of checkpoint ids.
const CHECKPOINT_NAMESPACE: Uuid = Uuid::from_u128(0x1b0e_94d2_7c6f_5a3d_8e21_5fa9_03c7_d648);

/// Returns the key of the batch for `request`.
pub fn key(request: &BatchRequest) -> String {
    let StepKey {
        message_id,
        agent_execution_id,
        step,
        ..
    } = &request.step;
    match &request.save {
        Save::UserMessage { message_id, .. } => user_message_key(message_id),
        Save::Thought => format!("{message_id}/{agent_execution_id}/{step}/thought"),
        Save::CutReply => format!("{message_id}/{agent_execution_id}/{step}/cut_reply"),
        Save::Compaction => format!("{message_id}/{agent_execution_id}/{step}/compaction"),
        // A step gives up every model at most once.
        Save::ModelFallback(fallback) => {
            let from = &fallback.from;
            format!("{message_id}/{agent_execution_id}/{step}/fallback/{from}")
        }
        Save::Observe { execution_id, .. } => {
            format!("{message_id}/{agent_execution_id}/{step}/observe/{execution_id}")
        }
        Save::Approval(answer) => {
            let (execution_id, hash) = (&answer.execution_id, &answer.input_hash);
            format!("{message_id}/{agent_execution_id}/{step}/approval/{execution_id}/{hash}")
        }
        Save::Question(asked) => {
            let (execution_id, number) = (&asked.execution_id, asked.number());
            format!("{message_id}/{agent_execution_id}/{step}/question/{execution_id}/{number}")
        }
        Save::Outcome(settled) => {
            let execution_id = &settled.execution_id;
            format!("{message_id}/{agent_execution_id}/{step}/outcome/{execution_id}")
        }
        Save::SubAgentStart(_) => format!("{message_id}/{agent_execution_id}/start"),
        Save::End(_) => end_key(message_id, agent_execution_id),
    }
}

/// Returns the key of the batch that ends an agent execution.
pub fn end_key(message_id: &str, agent_execution_id: &str) -> String {
    format!("{message_id}/{agent_execution_id}/end")
}

/// Returns the key of the batch that takes a user's message into a turn, as the first message or as a steering message.
pub fn user_message_key(message_id: &str) -> String {
    format!("{message_id}/user_message")
}

/// Returns the id of a checkpoint, a hash of its unique key. Only a tool's checkpoint has a tool execution.
pub fn checkpoint_id(
    agent_execution_id: &str,
    step: u32,
    checkpoint_type: &CheckpointType,
    execution_id: Option<&str>,
) -> String {
    let execution_id = execution_id.unwrap_or_default();
    let name = format!("{agent_execution_id}\0{step}\0{checkpoint_type}\0{execution_id}\0");
    Uuid::new_v5(&CHECKPOINT_NAMESPACE, name.as_bytes()).to_string()
}

/// Returns the id of the checkpoint `tool_complete`. A tool execution ends once, and a client that ends a call knows no
/// agent execution, so the id follows from the conversation and the tool execution alone.
pub fn completion_id(conversation_id: &str, execution_id: &str) -> String {
    let name = format!(
        "{conversation_id}\0{execution_id}\0{}\0",
        CheckpointType::ToolComplete
    );
    Uuid::new_v5(&CHECKPOINT_NAMESPACE, name.as_bytes()).to_string()
}

/// Returns the id of an event. Building a batch again gives identical ids. A batch is stored when the event with index
/// 0 is stored.
pub fn event_id(conversation_id: &str, batch_key: &str, index: usize) -> String {
    // Every part ends with a NUL, so that different parts never make identical names.
    let name = format!("{conversation_id}\0{batch_key}\0{index}\0");
    Uuid::new_v5(&EVENT_NAMESPACE, name.as_bytes()).to_string()
}
