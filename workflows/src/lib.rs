//! The workflow `agent-execution`: one turn of a conversation, decided step by step. It decides and emits events; it knows
//! no storage, model or tool.
//!
//! - `agent_execution`: the workflow as the engine calls it: input, signals, update, query, how a run ends
//! - `state`: [`AgentExecution`], what a run knows
//! - `turn`: the loop of a turn
//! - `step_limit`: the end of a turn whose steps are used up
//! - `tools`: the tools of a step
//! - `inbox`: pure; the messages that wait
//! - `outside`: pure; approvals and client results that are waited for
//! - `approval`: the wait for a person's approval
//! - `step_calls`: pure; how many calls of a step may begin, and which only wait
//! - `after_turn`: the workflow `after-turn`, which runs the hooks of an agent after its turn
//! - `remote`: tools that other workers run
//! - `sub_agent`: how a sub-agent's workflow is started and awaited
//! - `calls`: how each activity is called: time-outs, retries, cancellation
//!
//! Pure (invariant 1, pure workflow): no I/O, no clock, no randomness. The crate depends on no library for them, and
//! `clippy.toml` beside it bans those of the standard library. The order of what this code asks of the engine is fixed by
//! every stored history: a change needs the histories in `tests/histories` to replay, or a patch marker and a new stored
//! history.

mod after_turn;
mod agent_execution;
mod approval;
mod calls;
#[cfg(test)]
mod hostile_tests;
mod inbox;
mod outside;
mod remote;
mod state;
mod step_calls;
mod step_limit;
mod sub_agent;
mod tools;
mod turn;

pub use after_turn::AfterTurn;
pub use calls::TASK_TIMEOUT;
pub use state::AgentExecution;
