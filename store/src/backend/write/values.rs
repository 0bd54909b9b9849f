//! Parameters of collected statements, before the statements run.

use sqlx::{Arguments as _, Encode, Type, error::BoxDynError};

use super::super::dialect::{Arguments, Db};

/// Takes the parameters of one statement, in order.
pub(crate) struct Values<'a> {
    arguments: &'a mut Arguments,
    refusal: &'a mut Refusal,
}

/// The error of a rejected parameter. Like sqlx, `Parts` reports the error when the statements run.
#[derive(Default)]
pub(crate) struct Refusal(Option<BoxDynError>);

impl<'a> Values<'a> {
    /// Returns a collector that appends to existing parameters.
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
    /// Returns `taken`, or the error of a rejected parameter.
    pub(crate) fn or<T>(self, taken: T) -> Result<T, BoxDynError> {
        match self.0 {
            Some(error) => Err(error),
            None => Ok(taken),
        }
    }
}
