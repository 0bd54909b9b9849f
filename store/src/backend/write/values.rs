//! Parameters of statements that are collected before they are run.

use sqlx::{Arguments as _, Encode, Type, error::BoxDynError};

use super::super::{dialect::Db, sql::Arguments};

/// Takes the parameters of one statement, in order.
pub(crate) struct Values<'a> {
    arguments: &'a mut Arguments,
    refusal: &'a mut Refusal,
    /// Number of parameters of statements before this one.
    before: usize,
}

/// Why a parameter could not be taken. It is told when the statements are run, as sqlx does.
#[derive(Default)]
pub(crate) struct Refusal(Option<BoxDynError>);

impl<'a> Values<'a> {
    /// Takes parameters behind those that are there.
    pub(crate) fn of(arguments: &'a mut Arguments, refusal: &'a mut Refusal) -> Self {
        let before = arguments.len();
        Self {
            arguments,
            refusal,
            before,
        }
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

    /// Returns the number of parameters of this statement so far.
    pub(crate) fn count(&self) -> usize {
        self.arguments.len() - self.before
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
