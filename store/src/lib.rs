//! The store: conversations, messages, the event log, checkpoints, agent executions and tool executions. The store
//! decides when a worker, a gateway or Temporal holds different data.
//!
//! - [`api`]: the traits for workers, gateways and operators, and their types
//! - [`connect()`]: opens the [`Store`] at a URL
//! - [`batch`]: computes the rows of one transaction from the saved request and the stored state
//! - `blob_files`: images and files, in the database or in an object store
//! - [`model_input`]: the input of a model call, made from stored messages
//! - `observed`: tells observers about the outcomes of calls
//! - `output`: cuts a tool's output to its limits
//! - `peer`: the other end of a connection
//! - `backend`: the traits' bodies and their SQL, compiled once for each database; its module header explains locks and
//!   costs
//! - `rows`, `columns`, `sqlx_error`: rows, columns and errors common to both databases
//! - [`sqlite`]: the embedded back end (one writer, concurrent readers)
//! - [`postgres`]: the back end for many workers and gateways
//!
//! Must not be here: deltas of texts (the database never stores deltas), HTTP except to an object store, workflow code.

// The compiler sees `backend` twice, once for each database.
#![allow(clippy::duplicate_mod)]

pub mod api;
pub mod batch;
mod blob_files;
mod columns;
mod connect;
mod error;
pub mod model_input;
mod observed;
mod output;
mod peer;
pub mod postgres;
mod rows;
mod schema_range;
pub mod sqlite;
mod sqlx_error;

pub use api::*;
pub use blob_files::{
    BlobFile, BlobFiles, BlobRules, ObjectStore, RefusedBlob, S3Config, S3Store, Upload,
    UploadError,
};
pub use connect::{Store, StoreOptions, check_url, connect, migrate, peer};
pub use error::{Missing, NotRetryable, StoreError, TurnsOf};
pub use observed::{Observed, Observers, TurnObserver};
pub use peer::Peer;
pub use postgres::{PostgresOptions, PostgresStore};
pub use sqlite::{SqliteOptions, SqliteStore};

/// Statements that must stay index look-ups in a store of any size. Tests check their query plans.
#[doc(hidden)]
pub mod hot {
    /// A statement of `sql/` in the words of each database, if the statement exists for the database.
    #[derive(Debug)]
    pub struct Text {
        /// `<subject>/<name>`, like the file.
        pub name: &'static str,
        #[allow(missing_docs)]
        pub sqlite: Option<&'static str>,
        #[allow(missing_docs)]
        pub postgres: Option<&'static str>,
    }

    /// All statements of `sql/`.
    pub const TEXTS: &[Text] = include!(concat!(env!("OUT_DIR"), "/texts.rs"));

    /// Returns the statement `<subject>/<name>` in the words of SQLite.
    pub fn sqlite(name: &str) -> &'static str {
        let text = TEXTS.iter().find(|text| text.name == name);
        text.and_then(|text| text.sqlite)
            .unwrap_or_else(|| panic!("no statement `{name}` for SQLite"))
    }

    /// Returns the statement `<subject>/<name>` in the words of PostgreSQL.
    pub fn postgres(name: &str) -> &'static str {
        let text = TEXTS.iter().find(|text| text.name == name);
        text.and_then(|text| text.postgres)
            .unwrap_or_else(|| panic!("no statement `{name}` for PostgreSQL"))
    }
}
