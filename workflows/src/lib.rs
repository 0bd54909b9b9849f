//! The workflow `agent-execution`: one turn of a conversation, decided step by step. The workflow decides and emits
//! events; it knows no storage, model or tool.
//!
//! - `agent_execution`: the workflow's handlers for the engine: input, signals, update, query, the end of a run
//! - `state`: [`AgentExecution`], the state of a run
//! - `turn`: the loop of a turn
//! - `cut_calls`: pure; the end of a turn whose replies are cut in their tool calls
//! - `step_limit`: the end of a turn without steps left
//! - `tools`: the tools of a step
//! - `inbox`: pure; the waiting messages
//! - `outside`: pure; the approvals and client results for which a turn waits
//! - `approval`: the wait for a person's approval
//! - `step_calls`: pure; how many calls of a step may begin, and which calls only wait
//! - `after_turn`: the workflow `after-turn`, which runs an agent's hooks after its turn
//! - `send_message`: the workflow `send-message`, which hands a message to a conversation, for schedules
//! - `remote`: tools of other workers
//! - `sub_agent`: how a sub-agent's workflow is started and awaited
//! - `timer`: waits that end at a time
//! - `refused`: payloads that a run must not take: dropped signals, refused updates, failed workflow tasks
//! - `calls`: how each activity is called: time-outs, retries, cancellation
//!
//! Pure (invariant 1, pure workflow): no I/O, no clock, no randomness. The crate depends on no library for them, and
//! `clippy.toml` of the crate bans the standard library's functions for them. Every stored history fixes the order of
//! the commands. A change needs the histories in `tests/histories` to replay; see CONTRIBUTING.md,
//! "Changing the workflow".

mod after_turn;
mod agent_execution;
mod approval;
mod calls;
mod cut_calls;
#[cfg(test)]
mod hostile_tests;
mod inbox;
mod outside;
mod refused;
mod remote;
mod send_message;
mod state;
mod step_calls;
mod step_limit;
mod sub_agent;
mod timer;
mod tools;
mod turn;

pub use after_turn::AfterTurn;
pub use calls::TASK_TIMEOUT;
pub use send_message::SendMessage;
pub use state::AgentExecution;
