//! The store: conversations, messages, the event log, checkpoints, agent executions and tool executions. The truth of
//! Everturn.
//!
//! - [`api`]: the traits by who uses them, and their types
//! - [`connect()`]: the [`Store`] of a URL
//! - [`batch`]: turns what is saved and what is stored into the rows of one transaction
//! - `context`, `output`: the window of messages that a model is given; what becomes of a tool's output
//! - `backend`: the traits' bodies and their SQL, compiled once for each database; locks and costs are told there
//! - `rows`, `columns`, `sql_text`, `sqlx_error`: rows, columns, texts and errors that both databases share
//! - [`sqlite`]: the embedded back end (one writer, readers beside it)
//! - [`postgres`]: the back end of many workers and gateways
//!
//! Must not be here: deltas of texts (they never reach a database), HTTP, workflow code.

// `backend` is compiled twice, once for each database.
#![allow(clippy::duplicate_mod)]

pub mod api;
pub mod batch;
mod columns;
mod connect;
mod context;
mod error;
mod output;
pub mod postgres;
mod rows;
mod schema_range;
mod sql_text;
pub mod sqlite;
mod sqlx_error;

pub use api::*;
pub use connect::{Store, StoreOptions, check_url, connect, migrate};
pub use error::{Missing, StoreError};
pub use postgres::{PostgresOptions, PostgresStore};
pub use sqlite::{SqliteOptions, SqliteStore};

/// Texts that must stay index look-ups however much is stored, for the tests that explain them.
#[doc(hidden)]
pub mod hot {
    pub use crate::sql_text::SqlText;

    use crate::postgres::backend::sql;

    macro_rules! texts {
        ($($module:ident::$name:ident: $type:ty,)*) => {
            $(#[allow(missing_docs)] pub const $name: $type = sql::$module::$name;)*
        };
    }

    texts! {
        agent_executions::AGENT_EXECUTIONS: &str,
        agent_executions::BEGUN_TURNS: &str,
        agent_executions::DELEGATOR: &str,
        agent_executions::SAVE_STATE: &str,
        checkpoints::CHECKPOINT: &str,
        checkpoints::CLAIM_STEP: &str,
        conversations::ADVANCE_CONVERSATION: &str,
        conversations::CONVERSATIONS_BEFORE: &str,
        conversations::LOCK_CONVERSATION: SqlText,
        conversations::LOCK_VISIBLE_CONVERSATION: SqlText,
        conversations::OWN_CONVERSATIONS_BEFORE: &str,
        events::CONVERSATION_STATUS: &str,
        events::EVENTS: SqlText,
        events::INSERT_EVENTS: &str,
        events::LAST_SEQUENCES: SqlText,
        keys::KEY: &str,
        keys::KEYS: &str,
        messages::CONTEXT: &str,
        messages::QUEUED_MESSAGE: &str,
        messages::QUEUE_MESSAGE: &str,
        messages::RESUME_POINT: &str,
        messages::SET_TOOL_RESULTS: SqlText,
        outside::WAITING_TOOLS: &str,
        reconciliation::DUE_CHECKS: &str,
        reconciliation::UNFINISHED_TURN: &str,
        reconciliation::WAITING_MESSAGES: &str,
        tool_results::TOOL_RESULT: SqlText,
        tool_results::TOOL_RESULT_OF_THREAD: SqlText,
        tools::OPEN_TOOLS: SqlText,
        tools::RECORDED: SqlText,
        tools::START_TOOL: SqlText,
    }
}
