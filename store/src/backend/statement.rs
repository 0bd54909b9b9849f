//! What every statement of `sql/` does: a text, and a function that binds the parameters. The build script writes the
//! structs (`build/generate.rs`).

use sqlx::{
    FromRow,
    query::{Query, QueryAs, QueryScalar},
};

use super::{
    dialect::{Arguments, Db},
    write::values::{Refusal, Values},
};

/// A statement with its parameters.
pub(crate) trait Statement: Sized {
    /// The text with numbered parameters.
    const TEXT: &'static str;

    /// Binds the parameters in the order of their numbers.
    fn bind(self, values: &mut Values<'_>);

    /// Returns the statement with bound parameters. The error: a value that the database does not take.
    fn query(self) -> sqlx::Result<Query<'static, Db, Arguments>> {
        Ok(sqlx::query_with(Self::TEXT, self.arguments()?))
    }

    /// Like [`query`](Self::query), for a statement that returns rows.
    fn query_as<T>(self) -> sqlx::Result<QueryAs<'static, Db, T, Arguments>>
    where
        T: for<'r> FromRow<'r, <Db as sqlx::Database>::Row>,
    {
        Ok(sqlx::query_as_with(Self::TEXT, self.arguments()?))
    }

    /// Like [`query`](Self::query), for a statement that returns single values.
    fn query_scalar<T>(self) -> sqlx::Result<QueryScalar<'static, Db, T, Arguments>>
    where
        (T,): for<'r> FromRow<'r, <Db as sqlx::Database>::Row>,
    {
        Ok(sqlx::query_scalar_with(Self::TEXT, self.arguments()?))
    }

    /// Returns the bound parameters.
    fn arguments(self) -> sqlx::Result<Arguments> {
        let (mut arguments, mut refusal) = (Arguments::default(), Refusal::default());
        self.bind(&mut Values::of(&mut arguments, &mut refusal));
        refusal.or(arguments).map_err(sqlx::Error::Encode)
    }
}

/// A row of an insert of many rows (`-- rows: many`).
pub(crate) trait Rows: Sized {
    /// The text before the first row of values.
    const BEFORE: &'static str;
    /// The values of one row, with `$1` for the row's first parameter.
    const ROW: &'static str;
    /// The number of parameters in a row.
    const PARAMETERS: usize;
    /// The text after the last row of values.
    const AFTER: &'static str;

    /// Binds the parameters of one row, in order.
    fn bind(self, values: &mut Values<'_>);
}
