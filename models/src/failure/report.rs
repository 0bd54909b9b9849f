//! Reads an error of any shape: the provider's words, the names of the error, its HTTP status, and the time to wait.
//!
//! Providers and gateways write errors as objects, lists and texts, under many keys, and put an error as JSON into the
//! text of another error. Only known keys are read, because a provider may repeat the whole request under other keys.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    keys::{Meaning, meaning, squeezed},
    shape::{MAX_VALUES, fault_of_field, is_blank, told, values, within},
    text::{is_page, short, title},
    wait,
};

/// The most characters of a text in which phrases are searched. A model's own words may follow behind.
const SEARCHED_CHARS: usize = 2000;
/// The most texts of one error, and the most levels of errors within errors.
const MAX_WORDS: usize = 16;
const MAX_DEPTH: u8 = 10;
/// The most names of one error.
const MAX_NAMES: usize = 64;
/// The statuses of errors.
const STATUSES: std::ops::RangeInclusive<u64> = 400..=599;

/// The content of a provider's error.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The provider's texts, in the order in which a message shows them.
    words: Vec<String>,
    /// The texts in small letters and without quotes, for the search of phrases.
    pub(super) searched: String,
    /// The squeezed texts, for the search of names.
    squeezed: String,
    /// The types, codes and states of the error, squeezed.
    names: Vec<String>,
    /// The HTTP status in the error.
    pub(super) status: Option<u16>,
    /// The HTTP status in an error that a gateway passes on.
    pub(super) inner_status: Option<u16>,
    wait: Option<Duration>,
    /// The provider behind a gateway.
    upstream: Option<String>,
    /// True for a web page: a proxy or a wrong server has answered.
    pub(super) is_page: bool,
}

/// The position of a value in an error.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    depth: u8,
    /// True within an error that a gateway passes on.
    is_inner: bool,
    /// True when the message shows the texts already, as a part of another text.
    is_shown: bool,
}

impl Level {
    fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    fn inner(self) -> Self {
        Self {
            is_inner: true,
            ..self.deeper()
        }
    }
}

impl Report {
    /// Reads the body of an answer: JSON, a web page, events, or a text.
    pub(super) fn of_text(body: &str) -> Self {
        let mut report = Self::default();
        let body = body.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if is_page(body) {
            report.is_page = true;
            report.add_words(&title(body));
            return report;
        }
        let values = values(body);
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        if values.is_empty() {
            let events: Vec<&str> = data.collect();
            for text in if events.is_empty() {
                vec![body]
            } else {
                events
            } {
                report.add_text(text, Level::default());
            }
        } else {
            for value in &values {
                report.add_whole(value);
            }
        }
        report
    }

    /// Reads an error within a stream.
    pub(super) fn of(value: &Value) -> Self {
        let mut report = Self::default();
        report.add_whole(value);
        report
    }

    /// Sets the time to wait of the answer's headers. Headers are more exact than words.
    pub(super) fn set_wait(&mut self, wait: Option<Duration>) {
        self.wait = wait.or(self.wait);
    }

    /// Returns the time to wait.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.wait.or_else(|| wait::in_words(&self.searched))
    }

    /// Returns the provider's words for a message.
    pub(super) fn words(&self) -> Option<String> {
        let (first, rest) = match self.words.split_first() {
            Some((first, rest)) => (first.clone(), rest),
            None if self.names.is_empty() => return None,
            None => (self.names.join(", "), &[][..]),
        };
        let first = match &self.upstream {
            Some(upstream) => format!("{first} ({upstream})"),
            None => first,
        };
        let parts: Vec<&str> = std::iter::once(first.as_str())
            .chain(rest.iter().map(String::as_str))
            .collect();
        Some(short(&parts.join(": "))).filter(|words| !words.is_empty())
    }

    /// True when a type, a code or a state of the error is the name. `name` is squeezed.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|it| it == name)
    }

    /// True when a name of the error or a text contains the name, in any spelling. `name` is squeezed.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.has_name_with(name) || self.squeezed.contains(name)
    }

    /// True when a name of the error contains the part. `part` is squeezed.
    pub(super) fn has_name_with(&self, part: &str) -> bool {
        self.names.iter().any(|it| it.contains(part))
    }

    /// True when a text has the phrase. The parts of a phrase around `…` follow each other at any distance.
    pub(super) fn says(&self, phrase: &str) -> bool {
        let mut parts = phrase.split('…');
        parts
            .try_fold(self.searched.as_str(), |text, part| {
                text.split_once(part).map(|(_, behind)| behind)
            })
            .is_some()
    }

    fn add_whole(&mut self, value: &Value) {
        self.add(value, Level::default());
        if self.words.is_empty() && self.names.is_empty() && !is_blank(value) {
            self.add_words(&value.to_string());
        }
    }

    fn add(&mut self, value: &Value, level: Level) {
        if level.depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => self.add_text(text, level),
            Value::Array(values) => {
                let values = values.iter().take(MAX_VALUES);
                values.for_each(|value| self.add(value, level.deeper()));
            }
            Value::Object(fields) => self.add_object(fields, level),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add_object(&mut self, fields: &Map<String, Value>, level: Level) {
        if let Some(fault) = fault_of_field(fields) {
            self.add_text(&fault, level);
            return;
        }
        let mut known: Vec<(Meaning, &str, &Value)> = fields
            .iter()
            .filter_map(|(key, value)| Some((meaning(key)?, key.as_str(), value)))
            .collect();
        known.sort_by_key(|(meaning, ..)| match meaning {
            Meaning::Words(rank) => *rank,
            _ => u8::MAX,
        });
        for (meaning, key, value) in known {
            match meaning {
                Meaning::Words(_) => self.add_described(key, value, level.deeper()),
                Meaning::Name => self.add_name(value, level),
                Meaning::Parts if value.is_string() => {}
                Meaning::Parts => self.add(value, level.deeper()),
                Meaning::Raw => self.add(value, level.inner()),
                Meaning::Upstream => self.upstream = value.as_str().map(short),
                Meaning::Wait { unit_ms } => self.wait = self.wait.or(told(value, unit_ms)),
            }
        }
    }

    /// Adds the value of a key for texts. Some servers write an object with a list of texts for each wrong field.
    fn add_described(&mut self, key: &str, value: &Value, level: Level) {
        self.add(value, level);
        if let Value::Object(fields) = value
            && squeezed(key) == "errors"
            && fields.keys().all(|key| meaning(key).is_none())
        {
            let values = fields.values().take(MAX_VALUES);
            values.for_each(|value| self.add(value, level.deeper()));
        }
    }

    fn add_name(&mut self, value: &Value, level: Level) {
        let number = value
            .as_u64()
            .or_else(|| value.as_str()?.trim().parse().ok());
        if let Some(number) = number.filter(|number| STATUSES.contains(number)) {
            let status = if level.is_inner {
                &mut self.inner_status
            } else {
                &mut self.status
            };
            *status = status.or(u16::try_from(number).ok());
        } else if let Some(name) = value.as_str() {
            // AWS writes `com.amazon.coral.service#ThrottlingException:http://…`.
            let name = name.rsplit('#').next().unwrap_or_default();
            let name = name.split(":http").next().unwrap_or_default();
            let squeezed = squeezed(name);
            if !squeezed.is_empty() && self.names.len() < MAX_NAMES {
                self.names.push(squeezed);
            }
            if name.contains(' ') {
                self.add_text(name, level);
            }
        }
    }

    /// Adds a text. An error as JSON within the text counts, too.
    fn add_text(&mut self, text: &str, level: Level) {
        let text = text.trim();
        if is_page(text) {
            self.add_words(&title(text));
            return;
        }
        let within = within(text);
        let (before, count) = (self.words.len(), self.names.len());
        if let Some((value, true)) = &within {
            self.add(value, level.inner());
            if (self.words.len(), self.names.len()) != (before, count) {
                return;
            }
        }
        if level.is_shown {
            self.search(text);
        } else {
            self.add_words(text);
        }
        if let Some((value, false)) = &within {
            let level = Level {
                is_shown: true,
                ..level.inner()
            };
            self.add(value, level);
        }
    }

    fn add_words(&mut self, text: &str) {
        let is_new = !self.words.iter().any(|words| words.contains(text.trim()));
        if is_new && !text.trim().is_empty() && self.words.len() < MAX_WORDS {
            self.words.push(short(text));
            self.search(text);
        }
    }

    fn search(&mut self, text: &str) {
        let begin: String = text.chars().take(SEARCHED_CHARS).collect();
        self.squeezed.push_str(&squeezed(&begin));
        self.squeezed.push('\n');
        let is_quote = |c: char| matches!(c, '`' | '\'' | '"' | '’' | '“' | '”');
        let plain = begin.to_lowercase().replace(is_quote, "");
        let words: Vec<&str> = plain.split_whitespace().collect();
        self.searched.push_str(&words.join(" "));
        self.searched.push('\n');
    }
}
