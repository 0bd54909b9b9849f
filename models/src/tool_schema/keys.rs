//! The keys in the text of a call's arguments, changed while the text arrives. Everything else in the text stays as
//! written: numbers beyond 64 bits, spaces, and keys that stand twice.

use everturn_proto::Json;
use serde_json::Value;

use super::renamed::{Renamed, Side, branches};

/// Changes the keys of one text.
pub(super) struct Keys<'a> {
    renamed: &'a Renamed,
    to: Side,
    open: Vec<Open<'a>>,
    string: Option<Text>,
}

/// An open object or list.
enum Open<'a> {
    Object {
        /// The schemas of the object.
        schemas: Vec<&'a Value>,
        /// The schemas of the next value; `None` while a key is awaited.
        value: Option<Vec<&'a Value>>,
    },
    List(Vec<&'a Value>),
}

/// An open string.
struct Text {
    /// The letters so far, of a key; a value is written at once.
    key: Option<String>,
    is_escaped: bool,
}

impl<'a> Keys<'a> {
    pub(super) fn new(renamed: &'a Renamed, to: Side) -> Self {
        Self {
            renamed,
            to,
            open: Vec::new(),
            string: None,
        }
    }

    /// Returns a whole text with changed keys.
    pub(super) fn rewritten(renamed: &'a Renamed, to: Side, text: &str) -> String {
        let mut keys = Self::new(renamed, to);
        let mut rewritten = keys.push(text);
        rewritten.push_str(&keys.finish());
        rewritten
    }

    /// Takes a piece of the text. Returns the next piece with changed keys; the beginning of a key is held back.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut rewritten = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut rewritten);
        }
        rewritten
    }

    /// Returns the rest of the text: a key without its end.
    pub(super) fn finish(self) -> String {
        self.string.and_then(|text| text.key).unwrap_or_default()
    }

    fn take(&mut self, c: char, rewritten: &mut String) {
        if let Some(text) = &mut self.string {
            match &mut text.key {
                Some(key) => key.push(c),
                None => rewritten.push(c),
            }
            let ends = c == '"' && !text.is_escaped;
            text.is_escaped = c == '\\' && !text.is_escaped;
            if ends {
                let key = self.string.take().and_then(|text| text.key);
                if let Some(key) = key {
                    self.end_key(&key, rewritten);
                }
            }
            return;
        }
        match c {
            '"' => {
                let is_key = matches!(self.open.last(), Some(Open::Object { value: None, .. }));
                if !is_key {
                    rewritten.push(c);
                }
                let key = is_key.then(|| c.to_string());
                self.string = Some(Text {
                    key,
                    is_escaped: false,
                });
                return;
            }
            '{' => {
                let schemas = self.schemas();
                self.open.push(Open::Object {
                    schemas,
                    value: None,
                });
            }
            '[' => {
                let items: Vec<&Value> = self
                    .schemas()
                    .iter()
                    .filter_map(|schema| schema.get("items"))
                    .collect();
                self.open.push(Open::List(branches(&items)));
            }
            '}' | ']' => {
                self.open.pop();
            }
            ',' => {
                if let Some(Open::Object { value, .. }) = self.open.last_mut() {
                    *value = None;
                }
            }
            _ => {}
        }
        rewritten.push(c);
    }

    /// Returns the schemas of the next value.
    fn schemas(&self) -> Vec<&'a Value> {
        match self.open.last() {
            None => self.renamed.outermost(),
            Some(Open::Object { value, .. }) => value.clone().unwrap_or_default(),
            Some(Open::List(items)) => items.clone(),
        }
    }

    fn end_key(&mut self, written: &str, rewritten: &mut String) {
        let Some(Open::Object { schemas, value }) = self.open.last_mut() else {
            rewritten.push_str(written);
            return;
        };
        let key: String = serde_json::from_str(written).unwrap_or_default();
        let (renamed, within) = self.renamed.key(schemas, &key, self.to);
        *value = Some(within);
        match renamed {
            Some(renamed) => rewritten.push_str(&Value::from(renamed).to_string()),
            None => rewritten.push_str(written),
        }
    }
}

impl Renamed {
    /// Gives the arguments of a call the tool's own names. Everything else stays as the model wrote it.
    pub(crate) fn restored(&self, arguments: &Json) -> Json {
        self.rewritten(arguments, Side::Own)
    }

    /// Gives the arguments of a call the names that the model sees.
    pub(crate) fn shown(&self, arguments: &Json) -> Json {
        self.rewritten(arguments, Side::Shown)
    }

    fn rewritten(&self, arguments: &Json, side: Side) -> Json {
        if self.is_empty() {
            return arguments.clone();
        }
        // Cut arguments are a text.
        if let Ok(text) = arguments.decode::<String>() {
            return Json::of(&Keys::rewritten(self, side, &text));
        }
        let rewritten = Keys::rewritten(self, side, arguments.as_str());
        Json::parse(rewritten).unwrap_or_else(|_| arguments.clone())
    }
}
