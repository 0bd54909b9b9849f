//! The keys of batches. A key names a role in the turn, never a counter or a run id, so that a save that is
//! replayed with a newer signal ahead of it still has the same key (invariant 3).

use everturn_proto::turn::{SaveRequest, save_request};
use uuid::Uuid;

use super::kind;
use crate::api::Result;

/// Namespace of event ids. Never change it: stored batches would not be recognised any more.
const EVENT_NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_3c0a_52c8_5b7e_9a41_e0d7_4b86_20f3);

/// Namespace of checkpoint ids.
const CHECKPOINT_NAMESPACE: Uuid = Uuid::from_u128(0x1b0e_94d2_7c6f_5a3d_8e21_5fa9_03c7_d648);

/// The key of the batch that `request` names.
pub fn key(request: &SaveRequest) -> Result<String> {
    let SaveRequest {
        message_id,
        agent_execution_id,
        step,
        ..
    } = request;
    Ok(match kind(request)? {
        save_request::Batch::Steer(steer) => user_message_key(&steer.message_id),
        save_request::Batch::Thought(_) => {
            format!("{message_id}/{agent_execution_id}/{step}/thought")
        }
        save_request::Batch::Observe(observe) => {
            format!(
                "{message_id}/{agent_execution_id}/{step}/observe/{}",
                observe.execution_id
            )
        }
        save_request::Batch::Approval(approval) => {
            format!(
                "{message_id}/{agent_execution_id}/{step}/approval/{}",
                approval.execution_id
            )
        }
        save_request::Batch::SubAgent(_) => format!("{message_id}/{agent_execution_id}/start"),
        save_request::Batch::End(_) => format!("{message_id}/{agent_execution_id}/end"),
    })
}

/// The key of the batch that takes a message into a turn, as its first message or as a steer.
pub fn user_message_key(message_id: &str) -> String {
    format!("{message_id}/user_message")
}

/// Id of a checkpoint: its unique key, hashed.
pub fn checkpoint_id(
    agent_execution_id: &str,
    step: u32,
    checkpoint_type: &str,
    execution_id: &str,
) -> String {
    let name = format!("{agent_execution_id}\0{step}\0{checkpoint_type}\0{execution_id}\0");
    Uuid::new_v5(&CHECKPOINT_NAMESPACE, name.as_bytes()).to_string()
}

/// Id of an event: the same whenever the same batch is built. Place 0 tells whether a batch is stored.
pub fn event_id(conversation_id: &str, batch_key: &str, place: usize) -> String {
    // Parts are ended by a NUL, so that they cannot run together.
    let name = format!("{conversation_id}\0{batch_key}\0{place}\0");
    Uuid::new_v5(&EVENT_NAMESPACE, name.as_bytes()).to_string()
}
