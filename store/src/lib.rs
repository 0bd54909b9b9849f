//! The store: conversations, messages, the event log, checkpoints and executions. The truth of Everturn.
//!
//! - [`api`]: the traits by who uses them, and their types
//! - [`connect()`]: the [`Store`] of a URL
//! - `list`: pure; a page of conversations, and what a search finds
//! - [`batch`]: pure; turns a `SaveRequest` and what is stored into the rows of one transaction
//! - `output`: what becomes of a tool's output: cut, kept whole, or an error
//! - `sql`, `rows`, `sqlx_error`: texts, row types and errors that both databases share
//! - `backend`: the traits' bodies, compiled once for each database; locks and costs are told there
//! - [`sqlite`]: the embedded back end (one writer, readers beside it)
//! - [`postgres`]: the back end of many workers and gateways
//!
//! Must not be here: deltas (they never reach a database, B6), HTTP, workflow code.

// `backend` is compiled twice, once for each database.
#![allow(clippy::duplicate_mod)]

pub mod api;
pub mod batch;
mod connect;
mod error;
mod list;
mod output;
pub mod postgres;
mod rows;
mod sql;
pub mod sqlite;
mod sqlx_error;

pub use api::*;
pub use connect::{Store, StoreOptions, connect, migrate};
pub use error::StoreError;
pub use list::MAX_SCANNED;
pub use postgres::{PostgresOptions, PostgresStore};
pub use sqlite::{SqliteOptions, SqliteStore};

/// Texts that must stay index look-ups however much is stored, for the tests that explain them.
#[doc(hidden)]
pub mod hot {
    pub use crate::sql::{
        ADVANCE_CONVERSATION, BEGUN_TURNS, CHECKPOINT, CLAIM_STEP, CONTEXT, CONVERSATION_STATUS,
        CONVERSATIONS_BEFORE, DELEGATOR, EVENTS, EXECUTIONS, INSERT_EVENTS, KEY, KEYS,
        LAST_SEQUENCES, LOCK_CONVERSATION, LOCK_VISIBLE_CONVERSATION, OPEN_TOOLS,
        OWN_CONVERSATIONS_BEFORE, QUEUE_MESSAGE, QUEUED_MESSAGE, RESUME_POINT, SAVE_STATE,
        TOOL_RESULT, TOOL_RESULT_OF_THREAD, Text, WAITING_TOOLS,
    };
}
