//! The state machine of a chat completion: the chunks of a stream, or a whole completion.

use everturn_proto::event::Usage;
use everturn_stream::Part;
use serde_json::{Value, json};

use crate::{
    error::ModelError,
    limits::check_size,
    wire::{
        calls::{Arguments, Piece},
        hearing::Hearing,
        json::{Step, raw},
        received::{Progress, Received, ReplyReader, count},
    },
};

/// The types of the blocks that are kept with a call and go back to the provider.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";
pub(super) const DETAILS: &str = "reasoning_details";
pub(super) const EXTRA_CONTENT: &str = "extra_content";

/// Reads the chunks of one chat completion.
#[derive(Default)]
pub(crate) struct Reader {
    /// The text of `reasoning_content`.
    reasoning: String,
    /// The parts of `reasoning_details`, joined by their index and type.
    details: Vec<Value>,
    details_bytes: usize,
    /// The positions of the calls whose extra content is kept. Some servers repeat the content with each piece.
    has_extra: Vec<usize>,
}

impl ReplyReader for Reader {
    fn read(
        &mut self,
        frame: &Value,
        text: &str,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        // Groq and Moonshot have fields of their own for the counts.
        for path in ["/usage", "/x_groq/usage", "/choices/0/usage"] {
            if let Some(usage) = frame.pointer(path).filter(|usage| usage.is_object()) {
                received.usage = tokens(usage);
            }
        }
        // Perplexity and xAI name the sources beside the choices.
        for list in ["citations", "search_results"] {
            received.citations.hear_list(&frame[list]);
        }
        let Some(choice) = frame
            .pointer("/choices/0")
            .filter(|choice| choice.is_object())
        else {
            return Ok(());
        };
        // A whole completion has a message and no delta.
        let key = if choice["delta"].is_object() {
            "delta"
        } else {
            "message"
        };
        let delta = &choice[key];
        self.think(delta, hearing)?;
        received.citations.hear_list(&delta["annotations"]);
        // Azure names the sources of "On Your Data" in a context.
        received.citations.hear_list(&delta["context"]["citations"]);
        say(&delta["content"], hearing)?;
        say(&delta["refusal"], hearing)?;
        if !received.calls.is_empty() && has_text(&delta["content"]) {
            received.calls.followed();
        }
        let calls = delta["tool_calls"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (order, call) in calls.iter().enumerate() {
            let path = [
                Step::Key("choices"),
                Step::At(0),
                Step::Key(key),
                Step::Key("tool_calls"),
                Step::At(order),
            ];
            let order = (calls.len() > 1).then_some(order);
            self.call(call, order, text, &path, received)?;
        }
        if delta["function_call"].is_object() {
            let call = json!({"index": 0, "function": delta["function_call"]});
            self.call(&call, None, text, &[], received)?;
        }
        if let Some(word) = choice["finish_reason"]
            .as_str()
            .filter(|word| !word.is_empty())
        {
            received.ended(word);
        } else if key == "message" {
            received.progress = received.progress.max(Progress::Ended);
        }
        Ok(())
    }

    fn finish(&mut self, received: &mut Received) -> Result<(), ModelError> {
        if received.calls.is_empty() {
            return Ok(());
        }
        if !self.details.is_empty() {
            let block = json!({"type": DETAILS, "details": self.details});
            received.calls.sign(0, block.to_string())?;
        }
        if !self.reasoning.is_empty() {
            let block = json!({"type": REASONING_CONTENT, "text": self.reasoning});
            received.calls.sign(0, block.to_string())?;
        }
        Ok(())
    }
}

impl Reader {
    /// Hears the thoughts of a delta. Some servers send one thought under two names.
    fn think(&mut self, delta: &Value, hearing: &mut Hearing<'_>) -> Result<(), ModelError> {
        let names = [
            "reasoning_content",
            "reasoning",
            "reasoning_text",
            "thinking",
        ];
        let piece = names
            .iter()
            .find_map(|name| delta[name].as_str().filter(|text| !text.is_empty()));
        let details = delta["reasoning_details"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        match piece {
            Some(piece) => hearing.hear(Part::Reasoning, piece)?,
            None => {
                for text in details.iter().filter_map(|detail| {
                    detail["text"]
                        .as_str()
                        .or_else(|| detail["summary"].as_str())
                }) {
                    hearing.hear(Part::Reasoning, text)?;
                }
            }
        }
        if let Some(piece) = delta["reasoning_content"].as_str() {
            check_size("thoughts", self.reasoning.len() + piece.len())?;
            self.reasoning.push_str(piece);
        }
        for detail in details {
            self.details_bytes += detail.to_string().len();
            check_size("thoughts", self.details_bytes)?;
            self.keep(detail);
        }
        Ok(())
    }

    /// Keeps a part of `reasoning_details`. The parts of one thought are joined, because the provider wants the whole
    /// thought back.
    fn keep(&mut self, detail: &Value) {
        let is_of =
            |kept: &&mut Value| kept["type"] == detail["type"] && kept["index"] == detail["index"];
        let Some(kept) = self
            .details
            .iter_mut()
            .rev()
            .find(is_of)
            .filter(|_| !detail["index"].is_null())
        else {
            self.details.push(detail.clone());
            return;
        };
        for (key, value) in detail.as_object().into_iter().flatten() {
            match (kept[key].as_str(), value) {
                (Some(before), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    kept[key] = format!("{before}{more}").into();
                }
                (_, Value::Null) => {}
                (_, value) => kept[key] = value.clone(),
            }
        }
    }

    fn call(
        &mut self,
        call: &Value,
        order: Option<usize>,
        frame: &str,
        path: &[Step<'_>],
        received: &mut Received,
    ) -> Result<(), ModelError> {
        let function = &call["function"];
        let arguments = match &function["arguments"] {
            Value::Null => Arguments::None,
            Value::String(letters) => Arguments::Letters(letters),
            value => {
                let path: Vec<Step<'_>> = path
                    .iter()
                    .copied()
                    .chain([Step::Key("function"), Step::Key("arguments")])
                    .collect();
                Arguments::Whole(raw(frame, &path).unwrap_or_else(|| value.to_string()))
            }
        };
        let index = call["index"]
            .as_u64()
            .or_else(|| call["index"].as_str()?.parse().ok());
        let position = received.calls.hear(&Piece {
            index,
            order,
            id: call["id"].as_str(),
            name: function["name"].as_str(),
            arguments,
        })?;
        if call["extra_content"].is_object() && !self.has_extra.contains(&position) {
            self.has_extra.push(position);
            let block = json!({"type": EXTRA_CONTENT, "value": call["extra_content"]});
            received.calls.sign(position, block.to_string())?;
        }
        Ok(())
    }
}

/// Hears a content: a text, or parts as Mistral sends them.
fn say(content: &Value, hearing: &mut Hearing<'_>) -> Result<(), ModelError> {
    match content {
        Value::String(text) => hearing.hear(Part::Text, text),
        Value::Array(parts) => parts
            .iter()
            .try_for_each(|part| match part["type"].as_str() {
                Some("thinking") => match &part["thinking"] {
                    Value::String(text) => hearing.hear(Part::Reasoning, text),
                    thoughts => thoughts
                        .as_array()
                        .into_iter()
                        .flatten()
                        .try_for_each(|thought| {
                            hearing.hear(
                                Part::Reasoning,
                                thought["text"].as_str().unwrap_or_default(),
                            )
                        }),
                },
                _ => hearing.hear(
                    Part::Text,
                    part["text"]
                        .as_str()
                        .or_else(|| part.as_str())
                        .unwrap_or_default(),
                ),
            }),
        _ => Ok(()),
    }
}

fn has_text(content: &Value) -> bool {
    match content {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => parts.iter().any(|part| {
            part["text"]
                .as_str()
                .is_some_and(|text| !text.trim().is_empty())
        }),
        _ => false,
    }
}

fn tokens(usage: &Value) -> Usage {
    let cached = [
        "/prompt_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cached_tokens",
    ];
    let reasoning_tokens = count(usage, "/completion_tokens_details/reasoning_tokens");
    Usage {
        input_tokens: count(usage, "/prompt_tokens"),
        output_tokens: count(usage, "/completion_tokens").max(reasoning_tokens),
        cached_tokens: cached
            .iter()
            .map(|path| count(usage, path))
            .max()
            .unwrap_or_default(),
        cache_write_tokens: count(usage, "/prompt_tokens_details/cache_write_tokens")
            .max(count(usage, "/prompt_tokens_details/cache_creation_tokens")),
        reasoning_tokens,
        estimated: false,
    }
}
