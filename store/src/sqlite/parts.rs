//! The writing statements of a batch. SQLite runs the statements one after another, because SQLite has no round trips
//! to save.

use std::borrow::Cow;

use sqlx::{AssertSqlSafe, SqliteConnection, sqlite::SqliteArguments};

use super::backend::write::values::{Refusal, Values};
use crate::api::Result;

/// Statements to run together, in the caller's transaction.
#[derive(Default)]
pub(crate) struct Parts {
    statements: Vec<Statement>,
    refusal: Refusal,
}

struct Statement {
    text: Cow<'static, str>,
    arguments: SqliteArguments,
    is_kept: bool,
}

impl Parts {
    /// Adds a statement. `make` binds the parameters and then returns the text. `is_kept` means: the text will be used
    /// often.
    pub(crate) fn add_made(
        &mut self,
        is_kept: bool,
        make: impl FnOnce(&mut Values<'_>) -> Cow<'static, str>,
    ) {
        let mut arguments = SqliteArguments::default();
        let text = make(&mut Values::of(&mut arguments, &mut self.refusal));
        self.statements.push(Statement {
            text,
            arguments,
            is_kept,
        });
    }

    /// Runs the added statements.
    pub(crate) async fn execute(self, connection: &mut SqliteConnection) -> Result<()> {
        let statements = self.refusal.or(self.statements);
        for statement in statements.map_err(sqlx::Error::Encode)? {
            let query = sqlx::query_with(
                AssertSqlSafe(statement.text.into_owned()),
                statement.arguments,
            );
            let query = query.persistent(statement.is_kept);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}
