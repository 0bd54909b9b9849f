//! The tool calls of a reply, from the pieces in which providers send them: the only code that decides which piece
//! belongs to which call, and what a call's arguments are.
//!
//! A wrong decision runs a tool with another tool's arguments. So each rule below is one sentence:
//!
//! - Another id under an index is another call. Another name is another call, unless both are parts of one name.
//! - A piece without an index belongs to the call with its id, else by its order in the frame, else to the last call.
//! - Arguments as an object are the arguments. Arguments that arrive a second time, or that repeat themselves with each
//!   piece, count once.
//! - The last call of a cut reply has no arguments that can run.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use everturn_proto::{Json, limits::MAX_TOOL_CALLS};
use serde_json::{Value, json};

use crate::{error::ModelError, limits::check_size, port::ModelToolCall};

/// The most calls of a reply that are read. The calls after [`MAX_TOOL_CALLS`] are left out.
const MAX_READ_CALLS: usize = 4 * MAX_TOOL_CALLS;

/// The arguments in a piece of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arguments<'a> {
    /// No arguments in the piece.
    None,
    /// The next letters.
    Letters(&'a str),
    /// The arguments as a JSON value, as the provider wrote them.
    Whole(String),
}

/// A piece of a call.
#[derive(Debug, Clone)]
pub(crate) struct Piece<'a> {
    /// The number under which the provider counts the call.
    pub(crate) index: Option<u64>,
    /// The position of the piece among the pieces of its frame; `None` for the only piece of a frame.
    pub(crate) order: Option<usize>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: Arguments<'a>,
}

/// The calls of one reply.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    heard: Vec<Call>,
    /// The names of the offered tools.
    offered: BTreeSet<String>,
    /// True when a text began after the last call, so that the last call is whole even in a cut reply.
    is_followed: bool,
}

/// A call while it arrives.
#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    letters: String,
    /// The beginning of the last piece within `letters`.
    last_piece: usize,
    /// True while each piece of the arguments has repeated the pieces before it.
    is_cumulative: bool,
    whole: Option<String>,
    signatures: Vec<String>,
}

impl Calls {
    pub(crate) fn new(offered: impl IntoIterator<Item = String>) -> Self {
        Self {
            offered: offered.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heard.is_empty()
    }

    /// Returns the name and the arguments so far of each call, for people who watch. The arguments of a whole object that is
    /// still empty are left out, because letters may follow.
    pub(crate) fn so_far(&self) -> impl Iterator<Item = (&str, &str)> {
        self.heard
            .iter()
            .map(|call| (call.name.as_str(), call.so_far()))
    }

    /// Notes that something else began after the last call.
    pub(crate) fn followed(&mut self) {
        self.is_followed = !self.heard.is_empty();
    }

    /// Takes a piece of a call. Returns the position of the call.
    pub(crate) fn hear(&mut self, piece: &Piece<'_>) -> Result<usize, ModelError> {
        let (id, name) = (piece.id.unwrap_or_default(), piece.name.unwrap_or_default());
        let position = match self.position_of(piece, id, name) {
            Some(position) => position,
            None if self.heard.len() >= MAX_READ_CALLS => MAX_READ_CALLS - 1,
            None => {
                self.heard.push(Call {
                    index: piece.index,
                    ..Call::default()
                });
                self.heard.len() - 1
            }
        };
        self.is_followed = false;
        let call = &mut self.heard[position];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if name.starts_with(call.name.as_str()) {
            // The first name, or the whole name after a part of it.
            name.clone_into(&mut call.name);
        } else if !name.is_empty() && !call.name.starts_with(name) {
            call.name.push_str(name);
        }
        call.write(&piece.arguments)?;
        Ok(position)
    }

    /// Adds an opaque part that the provider needs back with the call at the position.
    pub(crate) fn sign(&mut self, position: usize, signature: String) -> Result<(), ModelError> {
        let Some(call) = self.heard.get_mut(position) else {
            return Ok(());
        };
        let bytes: usize = call.signatures.iter().map(String::len).sum();
        check_size("thoughts", bytes + signature.len())?;
        call.signatures.push(signature);
        Ok(())
    }

    /// Returns the position of the piece's call; `None`: the piece begins a call.
    fn position_of(&self, piece: &Piece<'_>, id: &str, name: &str) -> Option<usize> {
        let last = self.heard.len().checked_sub(1);
        let with_id = || self.heard.iter().rposition(|call| call.id == id);
        let position = match piece.index {
            Some(index) => self
                .heard
                .iter()
                .rposition(|call| call.index == Some(index))?,
            None if !id.is_empty() => with_id().or(last)?,
            None if name.is_empty() => piece.order.unwrap_or(usize::MAX).min(last?),
            None => last?,
        };
        (!self.begins_another(position, piece, id, name)).then_some(position)
    }

    /// True when the piece begins another call than the call at the position.
    fn begins_another(&self, position: usize, piece: &Piece<'_>, id: &str, name: &str) -> bool {
        let call = &self.heard[position];
        if !id.is_empty() && !call.id.is_empty() && id != call.id {
            // Some servers write a new id with each piece, and the name only once.
            return !name.is_empty() || (call.is_whole() && piece.arguments.begins());
        }
        if name.is_empty() {
            return false;
        }
        if name == call.name {
            // A repeated name is another call only if nothing says that the call is the same one.
            return id.is_empty() && call.is_whole() && piece.arguments.begins();
        }
        let is_part = call.has_no_arguments() && !self.offered.contains(&call.name);
        let joined = format!("{}{name}", call.name);
        !(call.name.is_empty()
            || name.starts_with(call.name.as_str())
            || is_part && (self.offered.contains(&joined) || !self.offered.contains(name)))
    }

    /// Returns the calls of the reply. `is_cut`: the reply is cut at a limit of tokens.
    pub(crate) fn finish(self, is_cut: bool) -> Vec<ModelToolCall> {
        let last = self.heard.len().saturating_sub(1);
        if self.heard.len() > MAX_TOOL_CALLS {
            tracing::warn!(
                calls = self.heard.len(),
                "a reply has more than {MAX_TOOL_CALLS} tool calls, and the further calls are left out"
            );
        }
        let calls = self.heard.into_iter().enumerate().take(MAX_TOOL_CALLS);
        calls
            .map(|(position, call)| call.finish(is_cut && position == last && !self.is_followed))
            .collect()
    }
}

impl Arguments<'_> {
    /// True when the arguments begin here, and are not a later part.
    fn begins(&self) -> bool {
        match self {
            Self::Letters(letters) => {
                letters.trim().is_empty() || letters.trim_start().starts_with('{')
            }
            Self::None | Self::Whole(_) => true,
        }
    }
}

impl Call {
    fn has_no_arguments(&self) -> bool {
        self.whole.is_none() && self.letters.trim().is_empty()
    }

    fn so_far(&self) -> &str {
        match &self.whole {
            Some(whole) if self.letters.is_empty() && whole != "{}" => whole,
            _ if self.is_cumulative => &self.letters[self.last_piece..],
            _ => &self.letters,
        }
    }

    /// True when the arguments so far are a whole object.
    fn is_whole(&self) -> bool {
        self.whole.is_some() || object(&self.letters).is_some()
    }

    fn write(&mut self, arguments: &Arguments<'_>) -> Result<(), ModelError> {
        match arguments {
            Arguments::None => {}
            Arguments::Letters(letters) => {
                check_size("arguments", self.letters.len() + letters.len())?;
                if letters.is_empty() {
                    return Ok(());
                }
                let last = &self.letters[self.last_piece..];
                self.is_cumulative =
                    letters.starts_with(last) && (self.last_piece == 0 || self.is_cumulative);
                self.last_piece = self.letters.len();
                self.letters.push_str(letters);
            }
            Arguments::Whole(value) => {
                check_size("arguments", value.len())?;
                self.whole = Some(value.clone());
            }
        }
        Ok(())
    }

    fn finish(self, is_cut: bool) -> ModelToolCall {
        let arguments = if is_cut {
            Json::of(&self.whole.as_deref().unwrap_or(&self.letters))
        } else {
            self.arguments()
        };
        ModelToolCall {
            call_id: Some(self.id).filter(|id| !id.is_empty()),
            tool_name: self.name,
            arguments,
            signatures: self.signatures,
        }
    }

    /// Returns the arguments as the model wrote them, or a text when they are no object.
    fn arguments(&self) -> Json {
        if let Some(whole) = &self.whole
            && let Ok(whole) = Json::parse(whole.as_str())
        {
            return whole;
        }
        let written = self.letters.trim();
        // Many servers send no arguments, or the word null, for a tool without arguments.
        if written.is_empty() || written == "null" {
            return Json::of(&json!({}));
        }
        if let Ok(value) = Json::parse(written) {
            // Arguments in quotes twice.
            let inner = value.decode::<String>().ok();
            return inner.and_then(|inner| object(&inner)).unwrap_or(value);
        }
        let (before, last) = self.letters.split_at(self.last_piece);
        let is_repeated = self.is_cumulative && self.last_piece > 0 || is_equal(before, last);
        let repeated = is_repeated.then(|| object(last)).flatten();
        repeated.unwrap_or_else(|| Json::of(&written))
    }
}

/// Returns the text as JSON, if it is an object.
fn object(text: &str) -> Option<Json> {
    let text = text.trim();
    text.starts_with('{')
        .then(|| Json::parse(text).ok())
        .flatten()
}

fn is_equal(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    one.trim() == other.trim() || read(one).is_some_and(|one| Some(one) == read(other))
}
