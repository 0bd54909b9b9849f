//! The blocks of a message's content: texts, thoughts, and calls of tools.
//!
//! Each block of the stream gets a number of its own, because some servers repeat the index of a block or leave the
//! index out.

use everturn_stream::Part;
use serde_json::Value;

use crate::{
    error::ModelError,
    limits::{check_size, invalid},
    wire::{
        calls::{Arguments, Piece},
        hearing::Hearing,
        json::{Step, raw},
        received::Received,
    },
};

/// The most blocks of a reply (invariant 10, nothing grows without a bound).
pub(super) const MAX_BLOCKS: usize = 4096;

/// A part of a frame: the frame as the provider wrote it, and the way to the part.
type Source<'a> = (&'a str, &'a [Step<'a>]);

/// The blocks of one reply.
#[derive(Default)]
pub(super) struct Blocks {
    /// The blocks in their order. The position of a block is its number.
    list: Vec<Block>,
    /// The thoughts in their order.
    thoughts: Vec<Thought>,
    thought_bytes: usize,
}

/// A block.
struct Block {
    /// The index under which the provider counts the block.
    index: Option<u64>,
    kind: Kind,
    is_open: bool,
}

enum Kind {
    Text,
    /// A thought, with its position in the list of thoughts.
    Thought(usize),
    Call(Call),
    /// A block that is passed over, like the call of a tool that the provider runs itself.
    Other,
}

/// A call of a tool.
struct Call {
    id: String,
    /// The arguments at the beginning of the block. They count when no piece follows.
    input: Option<String>,
}

/// A thought that the provider wants back with the call after it.
struct Thought {
    /// The block as it came.
    block: Value,
    /// The position of the call after the thought.
    call: Option<usize>,
}

impl Blocks {
    /// Begins a block.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        block: &Value,
        (frame, path): Source<'_>,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match text("type") {
            "text" => {
                let number = self.add(index, Kind::Text, received)?;
                received.citations.hear_list(&block["citations"]);
                hearing.hear_block(Part::Text, (number as u64, 0), text("text"))
            }
            "thinking" | "redacted_thinking" => {
                let number = self.add_thought(index, block.clone(), received)?;
                hearing.hear_block(Part::Reasoning, (number as u64, 0), text("thinking"))
            }
            "tool_use" => {
                // Some servers repeat the beginning of a block.
                if self.is_open_call(index, text("id")) {
                    return Ok(());
                }
                let path: Vec<Step<'_>> =
                    path.iter().copied().chain([Step::Key("input")]).collect();
                let call = Call {
                    id: text("id").to_owned(),
                    input: first_input(&block["input"], frame, &path),
                };
                check_size("arguments", call.input.as_ref().map_or(0, String::len))?;
                let number = self.add(index, Kind::Call(call), received)?;
                let position = received.calls.hear(&Piece {
                    id: block["id"].as_str(),
                    name: block["name"].as_str(),
                    ..piece(number, Arguments::None)
                })?;
                let waiting = self.thoughts.iter_mut().filter(|it| it.call.is_none());
                waiting.for_each(|thought| thought.call = Some(position));
                Ok(())
            }
            _ => self.add(index, Kind::Other, received).map(drop),
        }
    }

    /// Takes the next piece of a block. A piece without a beginning is the beginning of a text or a thought.
    pub(super) fn go_on(
        &mut self,
        index: Option<u64>,
        delta: &Value,
        frame: &str,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        let found = self.find(index);
        if found.is_some_and(|at| matches!(self.list[at].kind, Kind::Other)) {
            return Ok(());
        }
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match text("type") {
            "text_delta" => {
                let number = match found {
                    Some(at) => at,
                    None => self.add(index, Kind::Text, received)?,
                };
                hearing.hear_block(Part::Text, (number as u64, 0), text("text"))
            }
            "thinking_delta" | "signature_delta" => {
                let number = match found {
                    Some(at) => at,
                    None => self.add_thought(index, empty_thought(), received)?,
                };
                self.think(number, text("thinking"), text("signature"))?;
                hearing.hear_block(Part::Reasoning, (number as u64, 0), text("thinking"))
            }
            "citations_delta" => {
                received.citations.hear(&delta["citation"]);
                Ok(())
            }
            "input_json_delta" => self.write(found, &delta["partial_json"], frame, received),
            _ => Ok(()),
        }
    }

    /// Ends a block.
    pub(super) fn end(
        &mut self,
        index: Option<u64>,
        received: &mut Received,
    ) -> Result<(), ModelError> {
        let Some(at) = self.find(index) else {
            return Ok(());
        };
        self.list[at].is_open = false;
        self.settle(at, received)
    }

    /// Ends the reply: the thoughts go to the calls after them.
    pub(super) fn finish(&mut self, received: &mut Received) -> Result<(), ModelError> {
        if let Some(last) = self.list.len().checked_sub(1) {
            self.settle(last, received)?;
        }
        for Thought { block, call } in self.thoughts.drain(..) {
            if let Some(position) = call.filter(|_| is_signed(&block)) {
                received.calls.sign(position, block.to_string())?;
            }
        }
        Ok(())
    }

    /// Adds a block, and returns its number. The block before it is at its end.
    fn add(
        &mut self,
        index: Option<u64>,
        kind: Kind,
        received: &mut Received,
    ) -> Result<usize, ModelError> {
        let number = self.list.len();
        if number >= MAX_BLOCKS {
            return Err(invalid(&format!(
                "The model's reply has more than {MAX_BLOCKS} blocks."
            )));
        }
        if let Some(last) = number.checked_sub(1) {
            self.settle(last, received)?;
        }
        received.calls.followed();
        self.list.push(Block {
            index,
            kind,
            is_open: true,
        });
        Ok(number)
    }

    fn add_thought(
        &mut self,
        index: Option<u64>,
        block: Value,
        received: &mut Received,
    ) -> Result<usize, ModelError> {
        self.keep(block.to_string().len())?;
        let number = self.add(index, Kind::Thought(self.thoughts.len()), received)?;
        self.thoughts.push(Thought { block, call: None });
        Ok(number)
    }

    /// Counts bytes of thoughts.
    fn keep(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.thought_bytes += bytes;
        check_size("thoughts", self.thought_bytes)
    }

    /// Adds a piece to the thought of a block.
    fn think(&mut self, number: usize, piece: &str, signature: &str) -> Result<(), ModelError> {
        let Some(Block {
            kind: Kind::Thought(at),
            ..
        }) = self.list.get(number)
        else {
            return Ok(());
        };
        let at = *at;
        self.keep(piece.len() + signature.len())?;
        let block = &mut self.thoughts[at].block;
        for (key, more) in [("thinking", piece), ("signature", signature)] {
            let before = block[key].as_str().unwrap_or_default();
            if !more.is_empty() {
                block[key] = match key {
                    // A signature that repeats its beginning is whole.
                    "signature" if more.starts_with(before) => more.into(),
                    _ => format!("{before}{more}").into(),
                };
            }
        }
        Ok(())
    }

    /// Adds a piece to the arguments of a call. A piece under the index of another block, or under no index, belongs to
    /// the last block, if it is a call.
    fn write(
        &mut self,
        found: Option<usize>,
        input: &Value,
        frame: &str,
        received: &mut Received,
    ) -> Result<(), ModelError> {
        let is_call = |at: &usize| matches!(self.list[*at].kind, Kind::Call(_));
        let last = self.list.len().checked_sub(1);
        let Some(at) = found.filter(is_call).or(last.filter(is_call)) else {
            return Ok(());
        };
        let arguments = match input {
            Value::String(letters) if letters.is_empty() => return Ok(()),
            Value::String(letters) => Arguments::Letters(letters),
            Value::Object(_) => {
                let path = [Step::Key("delta"), Step::Key("partial_json")];
                Arguments::Whole(raw(frame, &path).unwrap_or_else(|| input.to_string()))
            }
            _ => return Ok(()),
        };
        if let Kind::Call(call) = &mut self.list[at].kind {
            call.input = None;
        }
        received.calls.hear(&piece(at, arguments)).map(drop)
    }

    /// Gives the call at the position the arguments of its beginning, if no piece has followed.
    fn settle(&mut self, at: usize, received: &mut Received) -> Result<(), ModelError> {
        if let Kind::Call(call) = &mut self.list[at].kind
            && let Some(input) = call.input.take()
        {
            let piece = piece(at, Arguments::Letters(&input));
            received.calls.hear(&piece)?;
        }
        Ok(())
    }

    /// Returns the position of the block under an index. Without an index, the last block.
    fn find(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.list.iter().rposition(|block| block.index == index),
            None => self.list.len().checked_sub(1),
        }
    }

    fn is_open_call(&self, index: Option<u64>, id: &str) -> bool {
        let block = self.find(index.filter(|_| !id.is_empty()));
        block.is_some_and(|at| {
            let block = &self.list[at];
            index.is_some()
                && block.is_open
                && matches!(&block.kind, Kind::Call(call) if call.id == id)
        })
    }
}

/// Returns a piece of the call with this number.
fn piece(number: usize, arguments: Arguments<'_>) -> Piece<'_> {
    Piece {
        index: Some(number as u64),
        order: None,
        id: None,
        name: None,
        arguments,
    }
}

/// Returns the arguments at the beginning of a call. Anthropic sends an empty object there, and some servers the whole
/// arguments.
fn first_input(input: &Value, frame: &str, path: &[Step<'_>]) -> Option<String> {
    match input {
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(_) => Some(raw(frame, path).unwrap_or_else(|| input.to_string())),
        Value::String(letters) => Some(letters.clone()).filter(|it| !it.is_empty()),
        _ => None,
    }
}

fn empty_thought() -> Value {
    serde_json::json!({"type": "thinking", "thinking": ""})
}

/// True for a thought that the provider takes back. A thought without a signature comes from a compatible server.
fn is_signed(block: &Value) -> bool {
    let is_there = |key: &str| block[key].as_str().is_some_and(|it| !it.is_empty());
    block["type"] == "redacted_thinking" || is_there("signature")
}
