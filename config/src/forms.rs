//! The forms of values: the rules for a single value of the file, as types. A table's field names its form.
//!
//! The form of a single table is in the table's file.
//!
//! Must not be here: relations between two values. The tables check relations.

use std::{
    fmt::{self, Display},
    marker::PhantomData,
    ops::RangeInclusive,
    time::Duration,
};

use everturn_proto::ids;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, value},
};
use toml::Spanned;
use url::Url;

/// The bounds of durations, in milliseconds.
pub(super) const SECOND: u64 = 1000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;

/// The rule for a single value of the file.
pub(super) trait Form {
    /// The TOML type of the value. A value of another TOML type ends the reading of the file.
    type Toml: DeserializeOwned;
    /// The type of the checked value.
    type Value: Clone;

    /// Returns the checked value. An error continues the sentence that the value's key begins, like "must be …".
    fn read(written: Self::Toml) -> Result<Self::Value, String>;
}

/// A value of the file, with its position. `Deserialize` keeps a mistake in `value` and does not fail, because serde
/// stops at the first failure, and an operator wants to see every mistake of the file.
pub(super) struct Written<F: Form> {
    pub(super) at: Spanned<()>,
    pub(super) value: Result<F::Value, String>,
}

impl<'de, F: Form> Deserialize<'de> for Written<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Spanned::<F::Toml>::deserialize(deserializer)?;
        Ok(Self {
            at: Spanned::new(written.span(), ()),
            value: F::read(written.into_inner()),
        })
    }
}

impl<F: Form> fmt::Debug for Written<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

/// A whole number from `MIN` to `MAX`.
pub(super) struct Number<const MIN: u64, const MAX: u64, T = u32>(PhantomData<T>);

impl<const MIN: u64, const MAX: u64, T: DeserializeOwned + Clone> Form for Number<MIN, MAX, T> {
    type Toml = i64;
    type Value = T;

    fn read(written: i64) -> Result<T, String> {
        within(i128::from(written), i128::from(MIN)..=i128::from(MAX))?;
        let number = value::I64Deserializer::<value::Error>::new(written);
        T::deserialize(number).map_err(|error| format!("cannot be {written}: {error}"))
    }
}

/// A limit. A 0 in the file means: no limit.
pub(super) struct Limit<F>(PhantomData<F>);

impl<F: Form<Toml = i64>> Form for Limit<F> {
    type Toml = i64;
    type Value = Option<F::Value>;

    fn read(written: i64) -> Result<Self::Value, String> {
        if written == 0 {
            return Ok(None);
        }
        F::read(written).map(Some)
    }
}

/// Returns the number, if the number is in the range.
pub(super) fn within<T: PartialOrd + Display>(
    number: T,
    range: RangeInclusive<T>,
) -> Result<T, String> {
    if range.contains(&number) {
        return Ok(number);
    }
    let (from, to) = (range.start(), range.end());
    Err(format!("must be from {from} to {to}, not {number}"))
}

/// A duration from `MIN` to `MAX` milliseconds, like "30s".
pub(super) struct Time<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Form for Time<MIN, MAX> {
    type Toml = String;
    type Value = Duration;

    fn read(text: String) -> Result<Duration, String> {
        duration(
            &text,
            Duration::from_millis(MIN)..=Duration::from_millis(MAX),
        )
    }
}

/// Returns the duration, if the text is a duration in the range.
pub(super) fn duration(text: &str, range: RangeInclusive<Duration>) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if range.contains(&duration) => Ok(duration),
        Ok(_) => {
            let from = humantime::format_duration(*range.start());
            let to = humantime::format_duration(*range.end());
            Err(format!("must be from {from} to {to}, not \"{text}\""))
        }
        Err(_) => Err(format!(
            "must be a duration like \"30s\" or \"5m\", not \"{text}\""
        )),
    }
}

/// A URL and its text in the file. `Url` changes some texts, for example adds a slash, and issuers compare texts.
#[derive(Debug, Clone)]
pub(super) struct WrittenUrl {
    pub(super) text: String,
    pub(super) url: Url,
}

impl WrittenUrl {
    /// Returns the URL, if `is_fit` accepts the URL.
    pub(super) fn read(text: String, is_fit: impl Fn(&Url) -> bool) -> Option<Self> {
        let url = text.parse().ok().filter(is_fit)?;
        Some(Self { text, url })
    }
}

/// An http or https URL.
pub(super) struct HttpUrl;

impl Form for HttpUrl {
    type Toml = String;
    type Value = WrittenUrl;

    fn read(text: String) -> Result<WrittenUrl, String> {
        WrittenUrl::read(text, |url| matches!(url.scheme(), "http" | "https")).ok_or_else(|| {
            "must be an http or https URL, like \"https://api.example.com/v1/\"".to_owned()
        })
    }
}

/// The name of an environment variable with a secret. Secrets usually have lower-case letters or dashes.
pub(super) struct Variable;

impl Form for Variable {
    type Toml = String;
    type Value = String;

    fn read(name: String) -> Result<String, String> {
        let is_fit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.is_empty() && name.bytes().all(is_fit) {
            return Ok(name);
        }
        // The message does not repeat the value. The value may be the secret itself, which must not get into a log.
        Err(
            "is the name of an environment variable, like API_TOKEN: names stand here, not values"
                .to_owned(),
        )
    }
}

/// The name of a tenant.
pub(super) struct Tenant;

impl Form for Tenant {
    type Toml = String;
    type Value = String;

    fn read(name: String) -> Result<String, String> {
        match ids::check(&name) {
            Ok(()) => Ok(name),
            Err(reason) => Err(format!("has \"{name}\", but a tenant {reason}")),
        }
    }
}

/// A text with more than white space.
pub(super) struct Text;

impl Form for Text {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        if text.trim().is_empty() {
            return Err("must not be empty".to_owned());
        }
        Ok(text)
    }
}

impl Text {
    /// Reads a text of at most this many bytes.
    pub(super) fn within(max_bytes: usize, text: String) -> Result<String, String> {
        let text = Self::read(text)?;
        let bytes = text.len();
        if bytes > max_bytes {
            return Err(format!(
                "has a text of {bytes} bytes, but the limit is {max_bytes}"
            ));
        }
        Ok(text)
    }
}

/// A value that is true or false.
pub(super) struct Flag;

impl Form for Flag {
    type Toml = bool;
    type Value = bool;

    fn read(written: bool) -> Result<bool, String> {
        Ok(written)
    }
}

/// A word of an enum that has its words by serde.
pub(super) struct Word<W>(PhantomData<W>);

impl<W: DeserializeOwned + Clone> Form for Word<W> {
    type Toml = String;
    type Value = W;

    fn read(text: String) -> Result<W, String> {
        let word = value::StrDeserializer::<value::Error>::new(&text);
        W::deserialize(word).map_err(|error| format!("cannot be \"{text}\": {error}"))
    }
}

/// The words of a closed list.
pub(super) trait Words: Clone + 'static {
    /// Every word of the file, with its value.
    const WORDS: &'static [(&'static str, Self)];
}

/// A word of a closed list.
pub(super) struct OneOf<W>(PhantomData<W>);

impl<W: Words> Form for OneOf<W> {
    type Toml = String;
    type Value = W;

    fn read(text: String) -> Result<W, String> {
        let found = W::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let words: Vec<_> = W::WORDS.iter().map(|(word, _)| *word).collect();
            format!("has \"{text}\", but the choices are: {}", words.join(", "))
        })
    }
}
