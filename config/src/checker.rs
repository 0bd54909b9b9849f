//! Reads single values of the file: numbers, durations, variables. The checker notes each mistake with its position,
//! and goes on reading.

use std::{
    fmt::Display,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use toml::Spanned;

use super::problem::{ConfigError, Problem, SourceText};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);

/// The process that reads the configuration.
#[derive(Clone, Copy)]
pub enum ReadBy<'a> {
    /// A worker, which runs tools and calls models.
    Worker {
        /// Names of the compiled-in tools, which agents may use besides the tools of the file.
        tools: &'a [String],
        /// Returns the value of an environment variable.
        environment: &'a dyn Fn(&str) -> Option<String>,
    },
    /// A gateway. It needs no secrets, and does not know the tools, because only workers have them.
    Gateway,
}

pub(super) struct Checker<'a> {
    source: SourceText<'a>,
    read_by: ReadBy<'a>,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(source: SourceText<'a>, read_by: ReadBy<'a>) -> Self {
        Self {
            source,
            read_by,
            problems: Vec::new(),
        }
    }

    /// Returns `read`, or the mistakes found so far.
    pub(super) fn finish<T>(self, read: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() {
            Ok(read)
        } else {
            Err(ConfigError::Wrong(self.problems))
        }
    }

    /// Notes a wrong value.
    pub(super) fn wrong<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) {
        let problem = self.source.problem(at.span().start, message.into());
        self.problems.push(problem);
    }

    /// Notes that the file lacks something.
    pub(super) fn missing(&mut self, message: impl Into<String>) {
        let problem = Problem {
            key: None,
            ..self.source.problem(0, message.into())
        };
        self.problems.push(problem);
    }

    /// Notes that a list has the name twice.
    pub(super) fn named_twice<T>(&mut self, at: &Spanned<T>, what: &str, name: &str) {
        self.wrong(
            at,
            format!("{what} `{name}` is named twice; remove one entry"),
        );
    }

    /// Notes an unknown name, and lists the known names.
    pub(super) fn unknown<'n, T>(
        &mut self,
        at: &Spanned<T>,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let known: Vec<_> = known.into_iter().collect();
        let known = if known.is_empty() {
            format!("no {what}s are configured")
        } else {
            format!("there are: {}", known.join(", "))
        };
        self.wrong(at, format!("there is no {what} `{name}`; {known}"));
    }

    /// Returns the number or, if the file has none, the default. Notes a number outside the range.
    pub(super) fn number<'v, T: Copy + PartialOrd + Display + 'v>(
        &mut self,
        key: &str,
        value: impl Into<Option<&'v Spanned<T>>>,
        default: T,
        range: RangeInclusive<T>,
    ) -> T {
        let Some(value) = value.into() else {
            return default;
        };
        if !range.contains(value.get_ref()) {
            let (from, to, found) = (range.start(), range.end(), value.get_ref());
            self.wrong(
                value,
                format!("`{key}` must be from {from} to {to}, not {found}"),
            );
        }
        *value.get_ref()
    }

    /// Returns the duration or, if the file has none, the default. Notes a duration outside the range.
    pub(super) fn duration<'v>(
        &mut self,
        key: &str,
        value: impl Into<Option<&'v Spanned<String>>>,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        self.optional_duration(key, value, range).unwrap_or(default)
    }

    /// Returns the duration, if the file has one. Notes a duration outside the range.
    pub(super) fn optional_duration<'v>(
        &mut self,
        key: &str,
        value: impl Into<Option<&'v Spanned<String>>>,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let value = value.into()?;
        let text = value.get_ref();
        match humantime::parse_duration(text) {
            Ok(duration) if range.contains(&duration) => return Some(duration),
            Ok(_) => {
                let from = humantime::format_duration(*range.start());
                let to = humantime::format_duration(*range.end());
                self.wrong(
                    value,
                    format!("`{key}` must be from {from} to {to}, not \"{text}\""),
                );
            }
            Err(_) => self.wrong(
                value,
                format!("`{key}` must be a duration like \"30s\" or \"5m\", not \"{text}\""),
            ),
        }
        None
    }

    /// Returns the value of the environment variable that `key` names. A gateway reads no secret and gets `None`.
    pub(super) fn secret(&mut self, key: &str, variable: &Spanned<String>) -> Option<String> {
        if !is_variable(variable.get_ref()) {
            // The message does not repeat the value. The value may be the secret itself, which must not get into a
            // log.
            self.wrong(
                variable,
                format!(
                    "`{key}` is the name of an environment variable, like API_TOKEN: names stand here, not values"
                ),
            );
            return None;
        }
        self.required_variable(key, variable)
    }

    /// Returns the value of an environment variable, and notes an unset variable. The variable's name is already
    /// checked.
    pub(super) fn required_variable(
        &mut self,
        key: &str,
        variable: &Spanned<String>,
    ) -> Option<String> {
        let ReadBy::Worker { environment, .. } = self.read_by else {
            return None;
        };
        let name = variable.get_ref();
        let value = environment(name);
        if value.is_none() {
            self.wrong(
                variable,
                format!("the environment variable {name} named by `{key}` is not set"),
            );
        }
        value
    }

    /// True when a worker reads the file. The programs of a worker's file run on this machine.
    pub(super) fn is_of_worker(&self) -> bool {
        matches!(self.read_by, ReadBy::Worker { .. })
    }

    /// Returns the value of a variable, or `None` when the variable is not set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        match self.read_by {
            ReadBy::Worker { environment, .. } => environment(name),
            ReadBy::Gateway => None,
        }
    }

    pub(super) fn http_url(&mut self, key: &str, url: &Spanned<String>, example: &str) {
        let is_http = url
            .get_ref()
            .parse::<url::Url>()
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            self.wrong(
                url,
                format!("`{key}` must be an http or https URL, like \"{example}\""),
            );
        }
    }

    /// Resolves a path of the file. A relative path starts at the file's own folder.
    pub(super) fn path_beside_file(&self, path: &Path) -> PathBuf {
        self.source.beside(path)
    }
}

/// True for usual names of environment variables. Secrets usually have lower-case letters or dashes.
fn is_variable(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_fit)
}

/// True for values that JSON can represent.
pub(super) fn is_json(value: &toml::Value) -> bool {
    match value {
        toml::Value::Datetime(_) => false,
        toml::Value::Float(number) => number.is_finite(),
        toml::Value::Array(values) => values.iter().all(is_json),
        toml::Value::Table(fields) => fields.values().all(is_json),
        toml::Value::String(_) | toml::Value::Integer(_) | toml::Value::Boolean(_) => true,
    }
}

/// Converts a duration to the milliseconds of a message. Time-outs are at most a month, which is below 2^32 ms.
pub(super) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
