//! Parameters of statements that are collected before they are run.

use sqlx::{Arguments as _, Encode, Type, error::BoxDynError};

use super::super::{dialect::Db, sql::Arguments};

/// Takes the parameters of one statement, in order.
pub(crate) struct Values<'a> {
    arguments: &'a mut Arguments,
    refusal: &'a mut Refusal,
}

/// Why a parameter could not be taken. It is told when the statements are run, as sqlx does.
#[derive(Default)]
pub(crate) struct Refusal(Option<BoxDynError>);

impl<'a> Values<'a> {
    /// Takes parameters behind those that are there.
    pub(crate) fn of(arguments: &'a mut Arguments, refusal: &'a mut Refusal) -> Self {
        Self { arguments, refusal }
    }

    /// Takes the next parameter.
    pub(crate) fn bind<'t, T>(&mut self, value: T) -> &mut Self
    where
        T: Encode<'t, Db> + Type<Db>,
    {
        if let Err(error) = self.arguments.add(value) {
            self.refusal.0.get_or_insert(error);
        }
        self
    }
}

impl Refusal {
    /// Returns the error, when there is one, or else what was taken.
    pub(crate) fn or<T>(self, taken: T) -> Result<T, BoxDynError> {
        match self.0 {
            Some(error) => Err(error),
            None => Ok(taken),
        }
    }
}
