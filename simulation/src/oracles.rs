//! Checks of the store beside a step of a worker: which message may begin its turn, and what a model may read. The checks
//! read the tables themselves, so that a wrong statement of the product does not hide its own mistake.

use everturn_proto::{Thread, words::OnBusy};
use everturn_store::{PageLimit, TurnInputs};
use sqlx::FromRow;

use crate::world::World;

/// The most rows and bytes of a context in a simulation.
const WHOLE_CONTEXT: PageLimit = PageLimit {
    rows: 10_000,
    bytes: u32::MAX,
};

/// A message that interrupts.
#[derive(FromRow)]
struct Interrupt {
    id: String,
    status: String,
}

/// Checks the begin of an interrupting message's turn, which runs: the older interrupting messages had their turns before, and
/// the turn has no newer interrupting message behind it.
pub(crate) async fn begin_of_interrupt(world: &World, conversation_id: &str, message_id: &str) {
    let interrupts: Result<Vec<Interrupt>, _> = sqlx::query_as(
        "SELECT id, status FROM messages WHERE conversation_id = $1 AND on_busy = $2 ORDER BY created_at, id",
    )
    .bind(conversation_id)
    .bind(OnBusy::Interrupt.as_str())
    .fetch_all(world.store.pool())
    .await;
    let interrupts = interrupts.unwrap_or_default();
    let Some(own) = interrupts.iter().position(|it| it.id == message_id) else {
        return;
    };
    for (index, other) in interrupts.iter().enumerate() {
        let is_waiting = other.status == "queued" && index != own;
        if is_waiting {
            let text = format!(
                "the interrupting message {message_id} begins while {} waits",
                other.id
            );
            world.facts().violation(text);
        }
    }
}

/// Returns true for a message that a turn has taken.
pub(crate) async fn is_taken(world: &World, message_id: &str) -> bool {
    let status: Result<Option<String>, _> =
        sqlx::query_scalar("SELECT status FROM messages WHERE id = $1")
            .bind(message_id)
            .fetch_optional(world.store.pool())
            .await;
    status.is_ok_and(|status| status.is_some_and(|status| status != "queued"))
}

/// Returns the state of a call's approval; `None` for an unknown call.
pub(crate) async fn approval(world: &World, execution_id: &str) -> Option<String> {
    let state =
        sqlx::query_scalar("SELECT approval FROM tool_execution_records WHERE execution_id = $1")
            .bind(execution_id)
            .fetch_optional(world.store.pool());
    state.await.ok().flatten()
}

/// Reads the messages for the model, as the product does after the claim, and checks them.
pub(crate) async fn context_of_call(
    world: &World,
    conversation_id: &str,
    message_id: &str,
    agent_execution_id: &str,
) {
    let thread = Thread::of(conversation_id, message_id, agent_execution_id);
    let context = world
        .store
        .context(conversation_id, &thread, WHOLE_CONTEXT, None);
    let messages = context.await.map(|context| context.messages);
    for message in messages.unwrap_or_default() {
        world.facts().promises.model_reads(&message.id);
    }
}
