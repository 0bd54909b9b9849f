//! The SQL texts, by subject. SQLite and PostgreSQL share one text, with `$n` parameters, `RETURNING` and `ON
//! CONFLICT`. Where the databases need different words, for row locks and lists, a [`SqlText`] has two texts.
//!
//! The comment at a text names its parameters, in order. A struct or a function beside the text binds long lists of
//! parameters. A text for a caller begins with three fixed parameters: `$1` conversation, `$2` tenant, `$3` owner or
//! none ([`for_caller`]).
//!
//! Words with a type are bound from the type, as are lists of words (`ToolStatus::OPEN`, `Effect::REPEATABLE`,
//! `ApprovalState::RUNNABLE`). Some words are literals in the texts. Words in the condition of a partial index are
//! literals, because PostgreSQL uses such an index only for a text with identical words. Single types of checkpoints
//! and messages are literals in texts about one type. Only the texts here know whether a message is `queued` or
//! `taken`.

#[macro_use]
mod macros;

#[macro_use]
pub(crate) mod budgets;
pub(crate) mod agent_executions;
pub(crate) mod checkpoints;
pub(crate) mod context;

use sqlx::FromRow;

use super::dialect::Db;
use crate::{api::Access, sql_text::SqlText};

/// Parameters of a statement.
pub(super) type Arguments = <Db as sqlx::Database>::Arguments;

/// A statement with its parameters.
pub(super) type Statement = sqlx::query::Query<'static, Db, Arguments>;

/// A statement with bound parameters and returned rows.
pub(super) type Select<'q, T> = sqlx::query::QueryAs<'q, Db, T, Arguments>;

/// Binds the three parameters that begin every text for a caller.
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
