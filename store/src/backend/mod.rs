//! Implements the traits of `api` once for SQLite and PostgreSQL. The compiler reads the folder twice, as
//! `sqlite::backend` and as `postgres::backend` (`#[path]` in each database's `mod.rs`). The statements are files in
//! `../../sql/`, and each database has its own structs for them (`statements`). The other differences are in the
//! database's `dialect.rs`: the types of sqlx, and the binding of lists.
//!
//! - `events.rs`, `conversations.rs`, `messages.rs`, `turn_inputs.rs`, `turns.rs`, `outside.rs`, `agent_executions.rs`,
//!   `past_calls.rs`, `tool_results.rs`, `keys.rs`, `owners.rs`, `consents.rs`, `leases.rs`, `reconciliation.rs`, `retention.rs`,
//!   `blobs.rs`, `audit.rs`,
//!   `tenants.rs`, `backlog.rs`: the traits
//! - `begin.rs`, `sub_agents.rs`, `checkpoints.rs`, `chain.rs`, `claims.rs`, `save.rs`: the transactions behind `turns.rs`
//! - `append.rs`: appends a batch under the conversation's lock; `snapshot.rs` reads and `write/` collects the batch's
//!   statements. The `parts.rs` beside each `dialect.rs` runs the statements of `write/`
//! - `budgets.rs`: reserves and settles the cost of model calls, and keeps the sums of tenants
//! - `lock.rs`, `runs.rs`, `definitions.rs`, `removal.rs`: the lock; the workflow run that owns the conversation;
//!   agents by their hash; the removal of conversations
//! - `list_changes.rs`: the versions of lists, by which gateways find changed lists
//! - `inbox.rs`: the waiting messages as a run needs them, and the cancels of messages
//! - `statement.rs`: what every statement of `sql/` does
//!
//! # Locks
//!
//! SQLite: a transaction that writes locks the whole file. PostgreSQL (READ COMMITTED):
//! 1. A call locks the conversation's row first if the call numbers events, counts or removes waiting messages, or
//!    removes a conversation (`begin_turn`, `begin_sub_agent`, `save`, `queue_message`, `withdraw_message`,
//!    `cancel_message`, `settle_outcome`, `read_inbox` with contents of signals, `delete_conversation`, `remove_expired`, and
//!    `note_failed_call` when another model is called next). Therefore a conversation's transactions run one after
//!    another. A transaction reads its data in statements after the locking statement, because later statements see
//!    every commit of the previous transaction. Numbers are taken under the lock, and the lock ends after the commit is
//!    visible (invariant 2, one order).
//! 2. Claims and ends do not lock the conversation. `claim_step`, `note_response`, `note_failed_call` and `note_hooks`
//!    (the row of the agent execution), `claim_tool`, `finish_tool` and `store_result` (the row of the tool) decide in
//!    the `WHERE` of one `UPDATE`. `complete_step` and `save_partial` decide by the unique key of the checkpoint. A
//!    `save` that closes tools locks their rows before reading them, because no end of a tool may come between.
//! 3. A call of rule 2 never waits for a conversation, and takes a single row with other writers (exception: rule 5).
//!    Foreign keys make an insert share-lock the referenced rows, agent executions before messages. Only a removal
//!    takes these rows from other transactions, in an identical order: tool records, agent executions, then the rows
//!    with references to them, messages, conversations. A removal also has the conversation's lock first, as rule 1
//!    demands. `remove_expired` takes several conversations and skips locked conversations instead of waiting.
//!    Therefore transactions never deadlock. `remove_rest` takes the rows of a hidden conversation page by page. A
//!    hidden conversation refuses every claim and every save, so only late inserts of workers meet the pages. Such an
//!    insert waits for one row at the most.
//! 4. A claim that the database received before a newer run took over counts as an earlier claim: the claim reads the
//!    epoch of the conversation's run (`runs.rs`) without the lock.
//! 5. `reserve_call`, `complete_step` and the settling of a call (`budgets.rs`) take three rows, always in this order:
//!    the agent execution, the budget of its conversation, a slot of its tenant's day. A removal takes the first two
//!    rows in the same order. A transaction that ends several agent executions locks every running agent execution of
//!    the conversation first (`lock_running`). The end of an agent execution takes the slots of its tools after every other row but the
//!    slot of a cut call, in the order of the tools. Only a transaction that ends several lost sub-agents may take slots
//!    in another order: PostgreSQL then ends a deadlock, and the caller repeats the call. A blob joins or leaves a
//!    conversation under the conversation's lock. The removal of blobs without a conversation skips locked blobs.
//! 6. A transaction that appends to the audit trail waits for every other appender until its commit. Therefore the
//!    entries' numbers become visible in order. The entry is the last statement of its transaction, so the appender
//!    waits for no other row meanwhile.
//! 7. `change_conversation` writes the conversation's row, and then rows of `list_changes`.
//! 8. `begin_turn` and the common kinds of `save` first try to read without waiting for the lock (`postgres/as_read/`).
//!    The writing statement begins with the conversation's row and therefore takes the conversation's lock before any
//!    other. `queue_message` first tries without the lock as long as few messages wait.
//! 9. Rows of `list_changes` (`list_changes.rs`) come after the row of the conversation, and a transaction takes the rows
//!    in the order of their key. A removal takes them after every other row but the conversation's. `queue_message` locks
//!    the conversation before them, and `store_result` the row of the tool. The statement of a save takes them before the
//!    rows of its other parts and before the sums of tools. Only a transaction that ends several agent executions as lost
//!    may take a slot of a day after them: PostgreSQL then ends a deadlock, and the caller repeats the call.
//! 10. `due_checks` and `put_back_checks` take rows of `turn_checks` and no other rows, so an end of a turn, which removes
//!     its check under the conversation's lock, never waits for a transaction that waits for the end.
//!
//! # Connections
//!
//! A call that waits for a row occupies its connection. To keep the calls of one conversation from occupying every
//! connection of a process, a call first takes a share of the pool and waits for the share in memory
//! (`postgres/shares.rs`). Calls under rules 1, 7 and 8 share one connection per conversation. Calls under rules 2 and
//! 5 share the rest of half the pool. A read waits for no row and needs no share. Leases have a connection of their own
//! in both databases (`sign_of_life`), because a sign of life must not wait behind the work. SQLite needs no shares, because the
//! owner of its one writing connection waits for no conversation.
//!
//! # What a call costs
//!
//! Round trips to PostgreSQL, independent of the size of the batch, on a connection with prepared statements. The first
//! use of a statement costs one more round trip, as does every insert of more than 8 rows of a kind. A connection that
//! idled for a second is pinged first. `tests/postgres_cost/` holds the numbers.
//!
//! | call | round trips |
//! |---|---|
//! | `events`, `events_before`, `event_links`, `conversation_head`, `last_sequences`, `context` | 1 |
//! | `agent_executions`, `waiting_call`, `conversation`, `shown_conversation`, `list_conversations`, `list_versions`, `resume_point` | 1 |
//! | `find_key`, `create_key`, `revoke_key`, `touch_key` | 1; with an entry of the audit trail: 4 |
//! | `owner_state`, `refused_owners` | 1 |
//! | `consent`, `consents_of`, `begun_consent`, `take_consent`, `claim_renewal`, `renew_consent`, `free_renewal`, `lose_consent` | 1 |
//! | `begin_consent` | 3 · `give_consent`, `end_consent`: 4 |
//! | `change_owner` | 5; allows the owner: 6 |
//! | `append_audit` | 3 · `audit_entries`, `prune_audit`, `tenants`, `tenant`, `usage_of_tenants`: 1 |
//! | `create_conversation` | 1; taken id: 2 |
//! | `change_conversation` | 1 |
//! | `delete_conversation` | 20; for each running agent execution: 1 more; of an owner: 1 more; with an entry of the audit trail: 1 more; with more than 10,000 events: 10 |
//! | `remove_rest` | 3 to 18, and one more for each depth of sub-agents · `remove_definitions`: 3 or 4 |
//! | `queue_message` | 1; when half of the messages wait that may: 5; repeated: 6; with attachments: one more |
//! | `withdraw_message` | 5 |
//! | `retry_turn` | 6; repeated: 5 |
//! | `begin_turn` | 2 (conversation and message are there), 9 (neither is) |
//! | `begin_turn` where a turn runs | 6, and again with the epoch: 5, or 12 when the other turn is ended as lost |
//! | `begin_sub_agent` | 7; repeated: 4 |
//! | `owner_of`, `message_texts` | 1 |
//! | `begin_after_turn` | 6 |
//! | `read_inbox` | 1; during a turn: 2; with contents of signals: under the lock |
//! | `claim_step` | 1; already paid: 3 · `note_try` (only of a try without a reply): 1 |
//! | `complete_step`, `save_partial`, `finish_tool` | 1 |
//! | `note_failed_call` (only of an agent with several models) | 1; when another model is called next: 6 |
//! | `reserve_call` (only where a turn has a budget) | 1; used up: 2 |
//! | `note_unanswered_call` (only after a failed call of a turn without a budget) | 1 |
//! | `release_call`, and a claim after a call that was cut: more than without | about 6 |
//! | `claim_tool` | 1 |
//! | `save`: thought and acts, observe, cut reply | 1; at a worker that has not begun the turn: 2 |
//! | `save`: thought whose calls wait for a person or a client | one more |
//! | `save`: end of a turn that has completed | 1; at a worker that has not begun the turn: 2 |
//! | `save`: steer | 6 |
//! | `save`: any other end | about 10 |
//! | `save`: approval | 9 |
//! | `save`, repeated | 6; of an approval: 7 |
//! | `begin_look` | 3; when this gateway looks: 5 · `due_checks`: 3 to 5 |
//! | `unfinished` | 6 · `put_back_checks`: 3 or a few more · `note_check`, `due_hooks`, `note_hooks`: 1 |
//! | `turn_result` | 2; of a turn that has not ended: 1 · `mcp_call`, `mcp_calls`: 1 |
//! | `backlog` | 2 |
//! | `fail_turn` | as many as a begin and an end |
//! | `usage_days`, `step_usage`, `checkpoints`, `tool_executions`, `failures`, `failure_counts` | 1 |
//! | `past_calls`, `failed_tries` | 1 · `past_call`: 2 |
//! | `renew_lease` | 1; the first one: 2 |
//! | `end_lease`, `leases`, `hold_lease`, `take_lease`, `remove_lease`, `running_agent_executions`, `tell_left_out`, `left_out` | 1 |
//! | `waiting_tools`, `outside_tool`, `granted_tools`, `used_definitions`, `tool_result`, `tool_result_of_thread` | 1 |
//! | `offer_trace`, `begin_trace`, `trace_of` (only while traces are exported) | 1 |
//! | `blob`, `blob_of`, `uploaded_blob`, `note_object`, `removed_objects`, `forget_object` | 1 |
//! | `add_blob` | 3; of an object: 4 · `add_blob_of`: the same · `remove_unattached`: 3 or 5 |
//! | `store_result`, `note_answer` | 2; with an entry of the audit trail: 5 |
//! | `settle_outcome` | 13; repeated: 7 |
//! | a turn of two steps with two tools, all calls of its worker together | 16 |

mod after_turn;
mod agent_executions;
pub(crate) mod append;
mod approvals;
mod audit;
mod backlog;
pub(crate) mod begin;
mod blobs;
pub(crate) mod budgets;
mod chain;
mod checkpoints;
mod claims;
mod consents;
mod conversations;
pub(crate) mod definitions;
mod events;
mod failures;
mod inbox;
mod keys;
mod leases;
pub(crate) mod list_changes;
mod lock;
pub(crate) mod messages;
mod outcomes;
mod outside;
mod owners;
mod past_calls;
mod reconciliation;
mod removal;
mod retention;
mod retry;
pub(crate) mod runs;
mod save;
mod snapshot;
pub(crate) mod statement;
mod sub_agents;
mod tenants;
mod tool_results;
mod traces;
mod turn_inputs;
mod turn_results;
mod turns;
mod usage;
pub(crate) mod write;

use everturn_proto::words::ApprovalState;

use super::{
    dialect::{self, Connection, Database},
    statements,
};
use crate::{
    api::{Access, Result},
    error::{Missing, StoreError},
};

impl Database {
    /// Awaits a read-only statement within the time limit.
    async fn read<T>(&self, statement: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
        self.in_time(async { Ok(statement.await?) }).await
    }

    /// Runs `work` in one transaction. An error rolls the transaction back.
    pub(super) async fn transaction<T>(
        &self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let done = work(&mut transaction).await?;
            self.commit(transaction).await?;
            Ok(done)
        })
        .await
    }

    /// Runs a transaction that removes whole conversations, with the longer time limit of removals. An error rolls the
    /// transaction back.
    async fn removing<T>(&self, work: impl AsyncFnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        self.in_removal_time(async {
            let mut transaction = self.begin_removal().await?;
            let done = work(&mut transaction).await?;
            self.commit(transaction).await?;
            Ok(done)
        })
        .await
    }

    /// Runs a transaction that locks the conversation first. `key` is the conversation's id or [`key_of_caller`].
    async fn locking<T>(
        &self,
        key: &str,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        // On the heap, because the future is large and would be copied into two surrounding futures.
        let call = Box::pin(self.transaction(work));
        self.in_lock_share(key, call).await
    }
}

/// Returns the share's key for this tenant's calls about a conversation. A tenant that names another tenant's
/// conversation delays no call of the owner.
pub(crate) fn key_of_caller(access: &Access, conversation_id: &str) -> String {
    format!("{}\n{conversation_id}", access.tenant_id)
}

/// Maps a foreign-key error to "not found" for the id that the caller gave.
fn missing(what: Missing, id: &str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| match error.as_database_error() {
        Some(database) if database.is_foreign_key_violation() => StoreError::not_found(what, id),
        _ => error.into(),
    }
}

/// Returns the approval states that let a tool run, as a list to bind.
fn runnable_approvals() -> Vec<String> {
    ApprovalState::RUNNABLE.map(String::from).into()
}
