//! The writing statements of a batch, sent as the parts of one statement: one round trip, regardless of the number of
//! rows.
//!
//! PostgreSQL runs every part on the tables as of the statement's start, so no part may read rows written by another
//! part. Foreign keys are checked at the end of the whole statement.

use std::borrow::Cow;

use sqlx::{Arguments as _, AssertSqlSafe, PgConnection, postgres::PgArguments};

use super::{
    backend::{
        statement::Statement,
        write::values::{Refusal, Values, renumbered},
    },
    statements::parts::{IfGuardFound, WithoutGuard},
};
use crate::api::Result;

/// A statement with this many parameters gets no further part. A part has at most 25,000, and a statement may have
/// 65,535.
const ENOUGH_PARAMETERS: usize = 30_000;

/// The name of the part on which the other parts depend.
const GUARD: &str = "guard";

/// Statements to run together, in the caller's transaction or as one statement of their own.
#[derive(Default)]
pub(crate) struct Parts {
    statements: Vec<Composed>,
    refusal: Refusal,
}

/// One statement of several parts.
#[derive(Default)]
struct Composed {
    parts: Vec<String>,
    arguments: PgArguments,
    is_guarded: bool,
    /// True when the text should stay prepared.
    is_kept: bool,
}

impl Parts {
    /// Begins with a guard: a part that must find a row. Without a row, the statement writes nothing and fails with a
    /// conflict. The guard runs before the other parts; its text ends with a `RETURNING`.
    pub(super) fn guarded_by(guard: impl Statement) -> Self {
        let mut parts = Self::default();
        parts.add(guard);
        for statement in &mut parts.statements {
            statement.is_guarded = true;
        }
        parts
    }

    /// Adds a statement. `make` binds the parameters and then returns the text. `is_kept` means: the text will be used
    /// often.
    pub(crate) fn add_made(
        &mut self,
        is_kept: bool,
        make: impl FnOnce(&mut Values<'_>) -> Cow<'static, str>,
    ) {
        let is_full = |last: &Composed| last.arguments.len() >= ENOUGH_PARAMETERS;
        if self.statements.last().is_none_or(is_full) {
            self.statements.push(Composed {
                is_kept: true,
                ..Composed::default()
            });
        }
        let Some(statement) = self.statements.last_mut() else {
            return;
        };
        let before = statement.arguments.len();
        let text = make(&mut Values::of(&mut statement.arguments, &mut self.refusal));
        statement.parts.push(renumbered(&text, before));
        statement.is_kept &= is_kept;
    }

    /// Returns true when the parts make up one statement.
    pub(super) fn is_one_statement(&self) -> bool {
        self.statements.len() == 1
    }

    /// Runs the added statements.
    pub(crate) async fn execute(self, connection: &mut PgConnection) -> Result<()> {
        let statements = self.refusal.or(self.statements);
        for statement in statements.map_err(sqlx::Error::Encode)? {
            let text = statement.text();
            let query = sqlx::query_with(AssertSqlSafe(text), statement.arguments);
            let query = query.persistent(statement.is_kept);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

impl Composed {
    fn text(&self) -> String {
        if let ([only], false) = (&self.parts[..], self.is_guarded) {
            return only.clone();
        }
        let named = self.parts.iter().enumerate().map(|(number, part)| {
            let name = match (number, self.is_guarded) {
                (0, true) => GUARD.to_owned(),
                _ => format!("part_{number}"),
            };
            format!("{name} AS ({part})")
        });
        let named: Vec<_> = named.collect();
        let end = if self.is_guarded {
            IfGuardFound::TEXT
        } else {
            WithoutGuard::TEXT
        };
        format!("WITH {} {end}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Update;

    impl Statement for Update {
        const TEXT: &'static str = "UPDATE a SET b = $2 WHERE c = $1 RETURNING c";

        fn bind(self, values: &mut Values<'_>) {
            values.bind("1").bind("2");
        }
    }

    struct Insert;

    impl Statement for Insert {
        const TEXT: &'static str = "INSERT INTO d VALUES ($1, $2, $1)";

        fn bind(self, values: &mut Values<'_>) {
            values.bind("3").bind("4");
        }
    }

    #[test]
    fn parameters_are_numbered_through() {
        let mut parts = Parts::guarded_by(Update);
        parts.add(Insert);
        let text = parts.statements[0].text();
        let expected = "WITH guard AS (UPDATE a SET b = $2 WHERE c = $1 RETURNING c), \
             part_1 AS (INSERT INTO d VALUES ($3, $4, $3)) SELECT";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_part_alone_is_a_plain_statement() {
        let mut parts = Parts::default();
        parts.add(Insert);
        assert_eq!(parts.statements[0].text(), Insert::TEXT);
    }

    #[test]
    fn no_statement_has_more_parameters_than_postgresql_takes() {
        let mut parts = Parts::default();
        for _ in 0..3 {
            parts.add_made(false, |values| {
                for number in 0..25_000_i64 {
                    values.bind(number);
                }
                "SELECT 1".into()
            });
        }
        let counts = parts.statements.iter().map(|one| one.arguments.len());
        assert_eq!(counts.collect::<Vec<_>>(), [50_000, 25_000]);
        assert!(!parts.is_one_statement());
    }
}
