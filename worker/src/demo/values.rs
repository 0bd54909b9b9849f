//! Takes words of a message as values of properties. A word is the value of a single property.

use serde_json::Value;

use super::{
    properties::Property,
    said::{self, Word},
};

/// Words between the name of a property and its value.
const BETWEEN: [&str; 5] = ["is", "id", "number", "no", "nr"];
/// The words of a message, each of which is a value at most once.
pub(super) struct Words {
    words: Vec<Word>,
    is_taken: Vec<bool>,
}

impl Words {
    pub(super) fn new(message: &str) -> Self {
        let words = said::words(message);
        let is_taken = vec![false; words.len()];
        Self { words, is_taken }
    }

    /// Takes the first free word that `read` accepts.
    fn take<T>(&mut self, read: impl Fn(&Word) -> Option<T>) -> Option<T> {
        let mut free = (0..self.words.len()).filter(|at| !self.is_taken[*at]);
        let (at, value) = free.find_map(|at| Some((at, read(&self.words[at])?)))?;
        self.is_taken[at] = true;
        Some(value)
    }

    /// Takes the value behind the property's name.
    pub(super) fn behind(&mut self, property: &Property<'_>) -> Option<Value> {
        if property.schema.get("enum").is_some() {
            return self.choice(property);
        }
        let name = said::terms(property.name);
        for at in 0..self.words.len() {
            let label = &self.words[at];
            let is_name = said::terms(&label.text)
                .iter()
                .any(|term| name.contains(term));
            if label.is_quoted || !is_name {
                continue;
            }
            let between = |word: &Word| BETWEEN.contains(&word.text.to_lowercase().as_str());
            let is_between = self.words.get(at + 1).is_some_and(between);
            let value_at = at + 1 + usize::from(is_between && !label.is_label);
            let Some(word) = self
                .words
                .get(value_at)
                .filter(|_| !self.is_taken[value_at])
            else {
                continue;
            };
            let is_value = label.is_label || word.is_quoted || word.is_identifier();
            if let Some(value) = property.value_of(word).filter(|_| is_value) {
                self.is_taken[value_at] = true;
                return Some(value);
            }
        }
        None
    }

    /// Takes a word that is one of the property's choices.
    fn choice(&mut self, property: &Property<'_>) -> Option<Value> {
        let choices = property.schema["enum"].as_array()?;
        let chosen = self.take(|word| {
            let is_chosen = |choice: &&Value| {
                let text = choice
                    .as_str()
                    .map_or_else(|| choice.to_string(), str::to_owned);
                text.eq_ignore_ascii_case(&word.text)
            };
            choices.iter().find(is_chosen).cloned()
        });
        chosen.or_else(|| match &choices[..] {
            [only] if property.is_required => Some(only.clone()),
            _ => None,
        })
    }

    /// Takes a value that fits the property's type.
    pub(super) fn fitting(&mut self, property: &Property<'_>) -> Option<Value> {
        if property.schema.get("enum").is_some() {
            return None;
        }
        match property.kind() {
            "integer" | "number" => self.take(|word| property.value_of(word)),
            "boolean" => self.flag(property),
            "array" => {
                let items = Property {
                    name: property.name,
                    schema: &property.schema["items"],
                    is_required: true,
                };
                let item = |word: &Word| {
                    items
                        .value_of(word)
                        .filter(|value| word.is_quoted || value.is_number())
                };
                let mut taken = Vec::new();
                while let Some(value) = self.take(item) {
                    taken.push(value);
                }
                (!taken.is_empty()).then(|| taken.into())
            }
            "string" => {
                let quoted = |word: &Word| word.is_quoted.then(|| word.text.clone().into());
                self.take(quoted).or_else(|| {
                    let identifier =
                        |word: &Word| word.is_identifier().then(|| word.text.clone().into());
                    property.is_identifier().then(|| self.take(identifier))?
                })
            }
            _ => None,
        }
    }

    /// True when the message has the property's name; false only for a required property.
    fn flag(&self, property: &Property<'_>) -> Option<Value> {
        let name = said::terms(property.name);
        let is_named = |word: &Word| {
            said::terms(&word.text)
                .iter()
                .any(|term| name.contains(term))
        };
        match self.words.iter().any(is_named) {
            false if !property.is_required => None,
            is_named => Some(is_named.into()),
        }
    }
}
