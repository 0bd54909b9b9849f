//! The store: conversations, messages, the event log, checkpoints and executions. The truth of Everturn.
//!
//! - [`api`]: the three traits by who uses them, and their types. A new back end implements these
//! - [`batch`]: pure; turns a `SaveRequest` and what is stored into the rows of one transaction
//! - `sql`, `rows`: texts and row types that every back end can share
//! - [`sqlite`]: the embedded back end (one writer, readers beside it)
//!
//! Must not be here: deltas (they never reach a database, B6), HTTP, workflow code.

pub mod api;
pub mod batch;
mod error;
mod rows;
mod sql;
pub mod sqlite;

pub use api::*;
pub use error::StoreError;
pub use sqlite::{SqliteOptions, SqliteStore};
