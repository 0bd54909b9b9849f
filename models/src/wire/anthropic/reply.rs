//! The state machine of a message: the events of a stream, or a whole message.

use everturn_proto::event::Usage;
use serde_json::Value;

use super::blocks::Blocks;
use crate::{
    error::ModelError,
    wire::{
        hearing::Hearing,
        json::Step,
        received::{Progress, Received, ReplyReader, count},
    },
};

/// Reads the events of one message.
#[derive(Default)]
pub(crate) struct Reader {
    blocks: Blocks,
    counts: Counts,
}

/// The counts of tokens so far.
#[derive(Default)]
struct Counts {
    /// The input outside the cache.
    input: u32,
    cache_write: u32,
    cache_read: u32,
    output: u32,
    thinking: u32,
}

impl ReplyReader for Reader {
    fn read(
        &mut self,
        frame: &Value,
        text: &str,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        match event(frame) {
            "message_start" => self.count(&frame["message"]["usage"], received),
            "content_block_start" => {
                let path = [Step::Key("content_block")];
                let block = &frame["content_block"];
                self.blocks
                    .begin(index(frame), block, (text, &path), received, hearing)?;
            }
            "content_block_delta" => {
                self.blocks
                    .go_on(index(frame), &frame["delta"], text, received, hearing)?;
            }
            "content_block_stop" => self.blocks.end(index(frame), received)?,
            "message_delta" => {
                self.count(&frame["usage"], received);
                end(&frame["delta"], received);
            }
            "message_stop" => received.progress = Progress::Over,
            "message" => self.whole(frame, text, received, hearing)?,
            // A sign of life, or an event that is newer than this reader.
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, received: &mut Received) -> Result<(), ModelError> {
        self.blocks.finish(received)
    }
}

impl Reader {
    /// Reads a message that came in place of a stream.
    fn whole(
        &mut self,
        message: &Value,
        text: &str,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        self.count(&message["usage"], received);
        let blocks = message["content"].as_array().into_iter().flatten();
        for (at, block) in blocks.enumerate() {
            let path = [Step::Key("content"), Step::At(at)];
            self.blocks
                .begin(None, block, (text, &path), received, hearing)?;
        }
        end(message, received);
        received.progress = received.progress.max(Progress::Ended);
        Ok(())
    }

    /// Takes the counts of an event. A later count replaces an earlier count, and a count of 0 replaces nothing: the
    /// event at the end has only the output at some servers, and the event at the beginning only zeros at others.
    fn count(&mut self, usage: &Value, received: &mut Received) {
        let counts = &mut self.counts;
        for (kept, path) in [
            (&mut counts.input, "/input_tokens"),
            (&mut counts.cache_write, "/cache_creation_input_tokens"),
            (&mut counts.cache_read, "/cache_read_input_tokens"),
            (&mut counts.output, "/output_tokens"),
            (
                &mut counts.thinking,
                "/output_tokens_details/thinking_tokens",
            ),
        ] {
            match count(usage, path) {
                0 => {}
                tokens => *kept = tokens,
            }
        }
        received.usage = counts.usage();
    }
}

impl Counts {
    /// Returns the usage. Anthropic's count of the input is without the tokens that the cache read or wrote.
    fn usage(&self) -> Usage {
        let of_cache = self.cache_write.saturating_add(self.cache_read);
        Usage {
            input_tokens: self.input.saturating_add(of_cache),
            output_tokens: self.output.max(self.thinking),
            cached_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.thinking,
            estimated: false,
        }
    }
}

/// Returns the name of an event. Some servers write the name only into the line before the data, so the fields tell the
/// name.
fn event(frame: &Value) -> &str {
    if let Some(name) = frame["type"].as_str() {
        return name;
    }
    match frame {
        _ if frame["content_block"].is_object() => "content_block_start",
        _ if frame["delta"]["stop_reason"].is_string() => "message_delta",
        _ if frame["delta"].is_object() => "content_block_delta",
        _ if frame["message"].is_object() => "message_start",
        _ if frame["content"].is_array() => "message",
        _ => "",
    }
}

fn index(frame: &Value) -> Option<u64> {
    let index = &frame["index"];
    index.as_u64().or_else(|| index.as_str()?.parse().ok())
}

/// Notes the end of the reply, if the fields name its reason.
fn end(fields: &Value, received: &mut Received) {
    let Some(word) = fields["stop_reason"].as_str().filter(|it| !it.is_empty()) else {
        return;
    };
    received.ended(word);
    if let Some(detail) = fields["stop_details"]["explanation"].as_str() {
        received.end.detail = Some(format!("{word}: {detail}"));
    }
}
