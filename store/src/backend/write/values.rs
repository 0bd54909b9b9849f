//! Parameters of collected statements, before the statements run, and the numbers of the parameters.

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

/// Returns the text with its parameter numbers, which begin at `$1`, raised by `by`.
pub(crate) fn renumbered(text: &str, by: usize) -> String {
    let mut renumbered = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        renumbered.push_str(before);
        renumbered.push('$');
        match after[..digits].parse::<usize>() {
            Ok(number) => renumbered.push_str(&(number + by).to_string()),
            Err(_) => renumbered.push_str(&after[..digits]),
        }
        rest = &after[digits..];
    }
    renumbered.push_str(rest);
    renumbered
}

#[cfg(test)]
mod tests {
    use super::renumbered;

    #[test]
    fn parameters_are_numbered_on() {
        assert_eq!(
            renumbered("($1, $2 + ($3 - $1))", 0),
            "($1, $2 + ($3 - $1))"
        );
        assert_eq!(
            renumbered("($1, $2 + ($3 - $1))", 9),
            "($10, $11 + ($12 - $10))"
        );
    }
}
