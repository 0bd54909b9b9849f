//! The texts of SQL, by subject. Both databases read the same text, with `$n` parameters, `RETURNING` and `ON
//! CONFLICT`. Where they need different words, for row locks and lists, a [`SqlText`] has both.
//!
//! The comment at a text names its parameters, in order. Many parameters are bound by a struct or a function beside the
//! text. A text that is run for a caller begins with the same three: `$1` conversation, `$2` tenant, `$3` owner or none
//! ([`for_caller`]).
//!
//! Words that have a type are bound from that type, and so are lists of words (`ToolStatus::OPEN`,
//! `Effect::REPEATABLE`, `ApprovalState::RUNNABLE`). Some words stand in the texts themselves: those in the condition
//! of a partial index, because PostgreSQL uses such an index only for a text with the same words, and single types of
//! checkpoints and messages in texts about nothing else. Only these texts know whether a message is `queued` or
//! `taken`.

#[macro_use]
mod macros;

#[macro_use]
pub(crate) mod budgets;
pub(crate) mod agent_executions;
pub(crate) mod audit;
pub(crate) mod blobs;
pub(crate) mod checkpoints;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod leases;
pub(crate) mod messages;
pub(crate) mod outside;
pub(crate) mod plans;
pub(crate) mod reconciliation;
pub(crate) mod removal;
pub(crate) mod tenants;
pub(crate) mod tool_results;
pub(crate) mod tools;
pub(crate) mod traces;

use sqlx::FromRow;

use super::dialect::Db;
use crate::{api::Access, sql_text::SqlText};

/// Parameters of a statement.
pub(super) type Arguments = <Db as sqlx::Database>::Arguments;

/// A statement with its parameters.
pub(super) type Statement = sqlx::query::Query<'static, Db, Arguments>;

/// A statement with its parameters that returns one value.
pub(super) type Scalar<'q, T> = sqlx::query::QueryScalar<'q, Db, T, Arguments>;

/// A statement with its parameters that returns rows.
pub(super) type Select<'q, T> = sqlx::query::QueryAs<'q, Db, T, Arguments>;

/// Binds to a text that is run for a caller the parameters that all such texts begin with.
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
