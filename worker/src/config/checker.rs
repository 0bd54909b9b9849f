//! Reads single values of the file: numbers, durations, variables. What is wrong is noted with its place, and reading
//! goes on.

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

/// Who reads the configuration.
#[derive(Clone, Copy)]
pub enum ReadBy<'a> {
    /// A worker: it runs tools and calls models.
    Worker {
        /// Names of the tools that agents may use besides those of the file.
        tools: &'a [String],
        /// Gives the value of an environment variable.
        environment: &'a dyn Fn(&str) -> Option<String>,
    },
    /// A gateway: it needs no secrets, and only workers know which tools there are.
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

    /// What was read, when nothing was wrong.
    pub(super) fn finish<T>(self, read: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() {
            Ok(read)
        } else {
            Err(ConfigError::Wrong(self.problems))
        }
    }

    /// Notes that this value is wrong.
    pub(super) fn wrong<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) {
        let problem = self.source.problem(at.span().start, message.into());
        self.problems.push(problem);
    }

    /// Notes that something is missing in the file.
    pub(super) fn missing(&mut self, message: impl Into<String>) {
        let problem = Problem {
            key: None,
            ..self.source.problem(0, message.into())
        };
        self.problems.push(problem);
    }

    /// Notes that this name stands in its list twice.
    pub(super) fn named_twice<T>(&mut self, at: &Spanned<T>, what: &str, name: &str) {
        self.wrong(
            at,
            format!("{what} `{name}` is named twice; keep one of them"),
        );
    }

    /// Notes that there is no such thing, and which there are.
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

    /// The number, which must be in the range, or the default when none is written.
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

    /// The duration, which must be in the range, or the default when none is written.
    pub(super) fn duration<'v>(
        &mut self,
        key: &str,
        value: impl Into<Option<&'v Spanned<String>>>,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        self.optional_duration(key, value, range).unwrap_or(default)
    }

    /// The duration, which must be in the range, when one is written.
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

    /// The value of the environment variable that `key` names. A gateway needs none.
    pub(super) fn secret(&mut self, key: &str, variable: &Spanned<String>) -> Option<String> {
        if !is_variable(variable.get_ref()) {
            // The value is not repeated: it may be the secret itself, which must not get into a log.
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

    /// The value of an environment variable whose name is known to be one.
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

    /// True when a worker reads the file, on the machine where programs will run.
    pub(super) fn is_of_worker(&self) -> bool {
        matches!(self.read_by, ReadBy::Worker { .. })
    }

    /// The value of a variable that need not be there.
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

    /// A path that is written in the file: relative to the file's own folder.
    pub(super) fn path_beside_file(&self, path: &Path) -> PathBuf {
        self.source.beside(path)
    }
}

/// True for names of variables as people write them. Secrets have lower-case letters or dashes in them.
fn is_variable(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_fit)
}

/// True for what JSON has, too.
pub(super) fn is_json(value: &toml::Value) -> bool {
    match value {
        toml::Value::Datetime(_) => false,
        toml::Value::Float(number) => number.is_finite(),
        toml::Value::Array(values) => values.iter().all(is_json),
        toml::Value::Table(fields) => fields.values().all(is_json),
        toml::Value::String(_) | toml::Value::Integer(_) | toml::Value::Boolean(_) => true,
    }
}

/// A duration as messages carry it. Time-outs are at most a month, below 2^32 ms.
pub(super) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
