//! Takes the values out of the tables' fields. The checker notes each mistake with its position, and goes on reading.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use toml::Spanned;

use super::{
    forms::{Form, Variable, Written},
    problem::{ConfigError, Problem},
    seen::SeenFiles,
    sources::Sources,
};

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
    sources: &'a Sources,
    read_by: ReadBy<'a>,
    seen: &'a mut SeenFiles,
    problems: Vec<Problem>,
    /// The unset variables of a part that may lack variables.
    lacking: Option<Vec<String>>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(sources: &'a Sources, read_by: ReadBy<'a>, seen: &'a mut SeenFiles) -> Self {
        Self {
            sources,
            read_by,
            seen,
            problems: Vec::new(),
            lacking: None,
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
        let problem = self.sources.problem(at.span().start, message.into());
        self.problems.push(problem);
    }

    /// Notes that the file lacks something.
    pub(super) fn missing(&mut self, message: impl Into<String>) {
        let problem = Problem {
            key: None,
            ..self.sources.problem(0, message.into())
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

    /// Returns the value, if the file has a right value. Notes a mistake.
    pub(super) fn value<'v, F: Form + 'v>(
        &mut self,
        written: impl Into<Option<&'v Written<F>>>,
    ) -> Option<F::Value> {
        let Written { at, value } = written.into()?;
        // Only a mistake needs the key, because a key costs a search in the whole file.
        let key = value.as_ref().err().and_then(|_| self.sources.key_at(at));
        self.right(at, &key.unwrap_or_default(), value.clone())
    }

    /// Returns a right value. Notes a mistake, whose text continues the sentence that the key begins.
    pub(super) fn right<T, V>(
        &mut self,
        at: &Spanned<T>,
        key: &str,
        value: Result<V, String>,
    ) -> Option<V> {
        value
            .map_err(|message| self.wrong(at, format!("`{key}` {message}")))
            .ok()
    }

    /// Returns the value or, if the file has none, the default. Notes a mistake.
    pub(super) fn value_or<'v, F: Form + 'v>(
        &mut self,
        written: impl Into<Option<&'v Written<F>>>,
        default: F::Value,
    ) -> F::Value {
        self.value(written).unwrap_or(default)
    }

    /// Returns the values of a list. Notes each mistake.
    pub(super) fn values<'v, F: Form + 'v, C: FromIterator<F::Value>>(
        &mut self,
        list: impl IntoIterator<Item = &'v Written<F>>,
    ) -> C {
        let list = list.into_iter();
        list.filter_map(|written| self.value(written)).collect()
    }

    /// Returns the value of the environment variable that `key` names. A gateway reads no secret and gets `None`.
    pub(super) fn secret(&mut self, key: &str, variable: &Written<Variable>) -> Option<String> {
        let name = self.right(&variable.at, key, variable.value.clone())?;
        self.required_variable(key, &variable.at, &name)
    }

    /// Returns the headers of `headers_env`, with the values of their environment variables.
    pub(super) fn secret_headers<C: FromIterator<(String, String)>>(
        &mut self,
        headers: &BTreeMap<Spanned<String>, Written<Variable>>,
    ) -> C {
        let header = |(name, variable): (&Spanned<String>, _)| {
            Some((
                name.get_ref().clone(),
                self.secret("headers_env", variable)?,
            ))
        };
        headers.iter().filter_map(header).collect()
    }

    /// Returns the value of the environment variable `name`, and notes an unset variable.
    pub(super) fn required_variable(
        &mut self,
        key: &str,
        at: &Spanned<()>,
        name: &str,
    ) -> Option<String> {
        let ReadBy::Worker { environment, .. } = self.read_by else {
            return None;
        };
        let value = environment(name);
        if value.is_none() {
            let message = format!("the environment variable {name} named by `{key}` is not set");
            match &mut self.lacking {
                Some(lacking) => lacking.push(message),
                None => self.wrong(at, message),
            }
        }
        value
    }

    /// Checks a part without which the process can start. Returns the messages about unset variables of the part, which are
    /// no mistakes of the file.
    pub(super) fn without_variables<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> T,
    ) -> (T, Vec<String>) {
        let outer = self.lacking.replace(Vec::new());
        let checked = part(self);
        let lacking = std::mem::replace(&mut self.lacking, outer);
        (checked, lacking.unwrap_or_default())
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

    /// Resolves a path. A relative path starts at the folder of the file that names the path.
    pub(super) fn path_beside_file(&self, path: &Spanned<impl AsRef<Path>>) -> PathBuf {
        self.sources
            .beside(path.span().start, path.get_ref().as_ref())
    }

    /// Resolves the path of a file whose text is part of the configuration. A change of the file is a change of the
    /// configuration.
    pub(super) fn file_beside(&mut self, path: &Spanned<impl AsRef<Path>>) -> PathBuf {
        let file = self.path_beside_file(path);
        self.seen.note(&file);
        file
    }

    /// Notes a file or a folder whose change is a change of the configuration.
    pub(super) fn note(&mut self, path: &Path) {
        self.seen.note(path);
    }
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
