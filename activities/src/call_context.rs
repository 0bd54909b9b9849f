//! The context in which a worker's own tool runs, from the stored call.

use everturn_proto::{ConversationName, ids};
use everturn_store::{ToolCaller, ToolKey, ToolRecord};
use everturn_tools::{Progress, ToolContext, ToolEvents, Wait};
use tokio_util::sync::CancellationToken;

use crate::{attempt::Attempt, questions};

/// Returns the context of an attempt of the call.
pub(crate) fn of_call(
    attempt: &Attempt<'_>,
    key: &ToolKey,
    record: &ToolRecord,
    caller: &ToolCaller,
) -> ToolContext {
    ToolContext {
        tenant_id: caller.tenant_id.clone(),
        owner_id: caller.owner_id.clone(),
        agent: caller.agent.clone(),
        conversation_id: ConversationName::of_id(&key.conversation_id).to_owned(),
        stored_conversation_id: key.conversation_id.clone(),
        message_id: key.message_id.clone(),
        agent_execution_id: key.agent_execution_id.clone(),
        depth: caller.depth,
        execution_id: key.execution_id.clone(),
        call_id: record.call.call_id.clone(),
        idempotency_key: idempotency_key(key),
        is_probe: false,
        attempt: record.attempt,
        cancellation: CancellationToken::new(),
        worker_stops: attempt.worker_stops(),
        progress: Progress::default(),
        events: ToolEvents::default(),
        wait: Wait::of("the definition of the tool"),
        answered: record.question.as_ref().and_then(questions::answered),
    }
}

/// Returns the context of the call's probe.
pub(crate) fn of_probe(
    attempt: &Attempt<'_>,
    key: &ToolKey,
    record: &ToolRecord,
    caller: &ToolCaller,
) -> ToolContext {
    ToolContext {
        is_probe: true,
        answered: None,
        wait: Wait::default(),
        ..of_call(attempt, key, record, caller)
    }
}

/// Returns the key of a call for systems that support idempotency keys.
pub(crate) fn idempotency_key(key: &ToolKey) -> String {
    ids::idempotency_key(&key.conversation_id, &key.message_id, &key.execution_id)
}
