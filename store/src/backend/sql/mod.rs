//! The texts of SQL, by subject. Both databases read them: `$n` parameters, `RETURNING`, `ON CONFLICT`. What they say
//! differently, row locks and lists, is a [`SqlText`] with both.
//!
//! Each text names what its parameters are, in order. Many parameters are bound by a struct beside the text. A text
//! that is run for a caller begins with the same three: `$1` conversation, `$2` tenant, `$3` owner or none
//! ([`for_caller`]).
//!
//! Words that have a type are bound from it, as are lists of them (`ToolStatus::OPEN`, `Effect::REPEATABLE`,
//! `ApprovalState::RUNNABLE`). Some stand in the texts themselves: those in the condition of a partial index, because
//! PostgreSQL takes such an index only for a text with the same words, and single types of checkpoints and messages in
//! texts about nothing else. Whether a message is `queued` or `taken` is known to these texts alone.

#[macro_use]
mod macros;

pub(crate) mod agent_executions;
pub(crate) mod checkpoints;
pub(crate) mod conversations;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod outside;
pub(crate) mod plans;
pub(crate) mod removal;
pub(crate) mod tool_results;
pub(crate) mod tools;

use sqlx::FromRow;

use super::dialect::Db;
use crate::{api::Access, sql_text::SqlText};

/// Parameters of a statement.
type Arguments = <Db as sqlx::Database>::Arguments;

/// A statement with its parameters.
pub(super) type Statement = sqlx::query::Query<'static, Db, Arguments>;

/// A statement with its parameters that returns rows.
pub(super) type Select<'q, T> = sqlx::query::QueryAs<'q, Db, T, Arguments>;

/// A text that is run for a caller, with the parameters that all of them begin with.
pub(super) fn for_caller<'q, T>(
    text: &'static str,
    access: &'q Access,
    conversation_id: &'q str,
) -> Select<'q, T>
where
    T: for<'r> FromRow<'r, <Db as sqlx::Database>::Row>,
{
    sqlx::query_as(text)
        .bind(conversation_id)
        .bind(&access.tenant_id)
        .bind(&access.owner_id)
}
