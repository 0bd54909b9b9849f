//! Implements the traits of `api` once for both databases. This folder is compiled twice, as `sqlite::backend` and as
//! `postgres::backend` (`#[path]` in their `mod.rs`). What differs is in the `dialect.rs` beside each: the types of
//! sqlx, the choice of a text's words ([`SqlText`](crate::sql_text::SqlText)), the binding of lists.
//!
//! - `events.rs`, `conversations.rs`, `turns.rs`, `outside.rs`, `agent_executions.rs`, `tool_results.rs`, `keys.rs`,
//!   `leases.rs`, `reconciliation.rs`, `retention.rs`, `blobs.rs`, `audit.rs`, `tenants.rs`: the traits
//! - `messages.rs`: the transactions behind `Conversations`
//! - `begin.rs`, `sub_agents.rs`, `checkpoints.rs`, `chain.rs`, `claims.rs`, `save.rs`: the transactions behind `TurnStore`
//! - `append.rs`: what appends a batch, under the lock; `snapshot.rs` and `write/`: what it reads and what it writes. The
//!   `parts.rs` beside each `dialect.rs` runs what `write/` collects
//! - `budgets.rs`: what calls of models reserve and settle, and the sums of tenants
//! - `lock.rs`, `runs.rs`, `definitions.rs`, `removal.rs`: the lock; which run has the conversation; agents by their
//!   hash; whole conversations
//! - `sql/`: the texts, by subject
//!
//! # Locks
//!
//! SQLite: a transaction that writes holds the whole file. PostgreSQL (READ COMMITTED):
//!
//! 1. What numbers events, counts or removes waiting messages or removes a conversation (`begin_turn`,
//!    `begin_sub_agent`, `save`, `queue_message`, `withdraw_message`, `delete_conversation`, `remove_expired`, and
//!    `note_failed_call` when another model is called next) locks the conversation's row first. Such transactions of
//!    one conversation run one after the other, and each reads what it depends on in statements after the one that
//!    locked, which see all that the transaction before it committed. Numbers are taken under the lock, and the lock
//!    ends after the commit is visible (invariant 2, one order).
//! 2. Claims and ends do not lock the conversation. `claim_step`, `note_response` and `note_failed_call` (the row of
//!    the agent execution), `claim_tool`, `finish_tool` and `store_result` (the row of the tool) decide in the `WHERE`
//!    of one `UPDATE`, `complete_step` and `save_partial` by the unique key of the checkpoint. A `save` that closes
//!    tools locks their rows before it reads them, so that no end comes between.
//! 3. Nothing under 2 ever waits for a conversation, and each takes one row that others write (but see 5). Foreign keys make an
//!    insert share-lock the rows that it names, agent executions before messages. Only a removal takes such rows from
//!    others, in the same order: tool records, agent executions, then the rows that name them, messages,
//!    conversations. Like all of 1 it has the conversation's lock first; `remove_expired`, which takes several, passes
//!    over those that are locked instead of waiting. So no two transactions wait for each other.
//! 4. A claim that was in the database when a newer run took over counts as made before: it reads the epoch of the
//!    conversation's run (`runs.rs`) without the lock.
//! 5. `reserve_call`, `complete_step` and what settles a call (`budgets.rs`) take three rows, always in this order: the agent
//!    execution, the budget of its conversation, a slot of its tenant's day. A removal takes the first two in the same order.
//!    Blobs are given to a conversation and taken from it under its lock. What removes those of no conversation passes over
//!    those that are locked.
//! 6. Who appends to the audit trail waits for all others who do, from there to the commit, so that its numbers become visible
//!    in their order. The entry is the last statement of its transaction, so nobody waits for anything else meanwhile.
//! 7. `rename_conversation` writes the conversation's row and nothing else.
//! 8. `begin_turn` and the common kinds of `save` first try without waiting for the lock to read (`postgres/as_read/`). The
//!    statement that writes begins with the conversation's row, so it takes the lock, and takes it first. `queue_message`
//!    first tries without the lock, as long as few messages wait.
//!
//! # Connections
//!
//! A call that waits for a row holds its connection. So that the calls of one conversation never hold all connections of
//! a process, each takes a share of them first, and waits for it in memory (`postgres/shares.rs`): those under 1, 7 and 8
//! have one connection together, those under 2 and 5 the rest of half the pool. What only reads waits for no row and
//! needs no share. SQLite needs none of this: whoever has its one connection that writes waits for no conversation.
//!
//! # What a call costs
//!
//! Round trips to PostgreSQL, whatever the size of the batch, on a connection that has prepared its statements. The
//! first time each statement costs one more, as does every time a statement that inserts more than 8 rows of a kind. A
//! connection that idled for a second is pinged first. `tests/postgres_cost/` holds the numbers.
//!
//! | call | round trips |
//! |---|---|
//! | `events`, `events_before`, `event_links`, `conversation_head`, `last_sequences`, `context` | 1 |
//! | `agent_executions`, `conversation`, `list_conversations`, `last_updates`, `resume_point` | 1 |
//! | `find_key`, `create_key`, `revoke_key`, `touch_key` | 1; with an entry of the audit trail: 4 |
//! | `append_audit` | 3 · `audit_entries`, `prune_audit`, `tenants`, `tenant`, `usage_of_tenants`: 1 |
//! | `create_conversation` | 1; taken id: 2 |
//! | `rename_conversation` | 1 |
//! | `delete_conversation` | 19; with an entry of the audit trail: 20 |
//! | `queue_message` | 1; when half of the messages wait that may: 5; repeated: 6; with attachments: one more |
//! | `withdraw_message` | 4 |
//! | `begin_turn` | 2 (conversation and message are there), 9 (neither is) |
//! | `begin_turn` where a turn runs | 6, and again with the epoch: 5, or 12 when the other turn is ended as lost |
//! | `begin_sub_agent` | 7; repeated: 4 |
//! | `owner_of`, `message_texts` | 1 |
//! | `begin_after_turn` | 6 |
//! | `claim_step` | 1; already paid: 3 |
//! | `complete_step`, `save_partial`, `finish_tool` | 1 |
//! | `note_failed_call` (only of an agent with several models) | 1; when another model is called next: 6 |
//! | `reserve_call` (only where a turn has a budget) | 1; used up: 2 |
//! | `release_call`, and a claim after a call that was cut: more than without | about 6 |
//! | `claim_tool` | 1 |
//! | `save`: thought and acts, observe, cut reply | 1; at a worker that has not begun the turn: 2 |
//! | `save`: end of a turn that has completed | 1; at a worker that has not begun the turn: 2 |
//! | `save`: steer | 6 |
//! | `save`: any other end | about 10 |
//! | `save`: approval | 9 |
//! | `save`, repeated | 6 |
//! | `due_checks` | 3 to 6 · `unfinished`: 6 · `put_back_checks`: 3 or a few more · `note_check`: 1 |
//! | `fail_turn` | as many as a begin and an end |
//! | `usage_days`, `step_usage`, `checkpoints`, `tool_executions` | 1 |
//! | `renew_lease` | 1; the first one: 2 |
//! | `end_lease`, `leases`, `take_lease`, `remove_lease`, `running_agent_executions` | 1 |
//! | `waiting_tools`, `outside_tool`, `granted_tools`, `used_definitions`, `tool_result`, `tool_result_of_thread` | 1 |
//! | `offer_trace`, `begin_trace`, `trace_of` (only while traces are exported) | 1 |
//! | `blob`, `blob_of`, `uploaded_blob`, `note_object`, `removed_objects`, `forget_object` | 1 |
//! | `add_blob` | 3; of an object: 4 · `add_blob_of`: the same · `remove_unattached`: 3 or 5 |
//! | `store_result`, `note_answer` | 2; with an entry of the audit trail: 5 |
//! | a turn of two steps with two tools, all calls of its worker together | 16 |

mod after_turn;
mod agent_executions;
mod append;
mod approvals;
mod audit;
pub(crate) mod begin;
mod blobs;
pub(crate) mod budgets;
mod chain;
mod checkpoints;
mod claims;
mod conversations;
pub(crate) mod definitions;
mod events;
mod keys;
mod leases;
mod lock;
mod messages;
mod outside;
mod reconciliation;
mod removal;
mod retention;
pub(crate) mod runs;
mod save;
mod snapshot;
#[macro_use]
pub(crate) mod sql;
mod sub_agents;
mod tenants;
mod tool_results;
mod traces;
mod turns;
pub(crate) mod write;

use everturn_proto::words::ApprovalState;

use super::dialect::{self, Connection, Database};
use crate::{
    api::{Access, Result},
    error::{Missing, StoreError},
};

impl Database {
    /// Waits for a statement that only reads.
    async fn read<T>(&self, statement: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
        self.in_time(async { Ok(statement.await?) }).await
    }

    /// Runs what is to be committed together. An error rolls it back.
    pub(super) async fn transaction<T>(
        &self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let done = work(&mut transaction).await?;
            transaction.commit().await?;
            Ok(done)
        })
        .await
    }

    /// Runs what removes whole conversations, however large they are. An error rolls it back.
    async fn removing<T>(&self, work: impl AsyncFnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        self.in_removal_time(async {
            let mut transaction = self.begin_removal().await?;
            let done = work(&mut transaction).await?;
            transaction.commit().await?;
            Ok(done)
        })
        .await
    }

    /// Runs a transaction that locks the conversation first. `key` is its id, or [`key_of_caller`].
    async fn locking<T>(
        &self,
        key: &str,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        // On the heap, because it is large, and would be in both futures around it.
        let call = Box::pin(self.transaction(work));
        self.in_lock_share(key, call).await
    }
}

/// Stands for the conversation in calls of this tenant. A tenant that names a conversation which is not theirs makes
/// none of its own calls wait.
pub(crate) fn key_of_caller(access: &Access, conversation_id: &str) -> String {
    format!("{}\n{conversation_id}", access.tenant_id)
}

/// Maps an error of a statement whose foreign keys name something the caller asked for.
fn missing(what: Missing, id: &str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| match error.as_database_error() {
        Some(database) if database.is_foreign_key_violation() => StoreError::not_found(what, id),
        _ => error.into(),
    }
}

/// Returns the approvals that let a tool run, as a list to bind.
fn runnable_approvals() -> Vec<String> {
    ApprovalState::RUNNABLE.map(String::from).into()
}
