//! The state machine of a reply of Gemini: the frames of a stream, or a whole reply.
//!
//! Google writes names in camelCase; proxies with protobuf libraries write snake_case. Both are read.

use everturn_proto::event::Usage;
use everturn_stream::Part;
use serde_json::Value;

use crate::{
    error::ModelError,
    limits::invalid,
    wire::{
        calls::{Arguments, Piece},
        finish::End,
        hearing::Hearing,
        json::{Step, raw, raw_items},
        received::{Progress, Received, ReplyReader, count},
    },
};

/// The two names of a field.
type Names = [&'static str; 2];

const USAGE: Names = ["usageMetadata", "usage_metadata"];
const FEEDBACK: Names = ["promptFeedback", "prompt_feedback"];
const BLOCK_REASON: Names = ["blockReason", "block_reason"];
const BLOCK_MESSAGE: Names = ["blockReasonMessage", "block_reason_message"];
const FINISH_REASON: Names = ["finishReason", "finish_reason"];
const FINISH_MESSAGE: Names = ["finishMessage", "finish_message"];
const SIGNATURE: Names = ["thoughtSignature", "thought_signature"];
const CALL: Names = ["functionCall", "function_call"];
const PARTIAL: Names = ["partialArgs", "partial_args"];
const CONTINUED: Names = ["willContinue", "will_continue"];
const CODE: Names = ["executableCode", "executable_code"];
const CODE_RESULT: Names = ["codeExecutionResult", "code_execution_result"];
const INLINE_FILE: Names = ["inlineData", "inline_data"];
const LINKED_FILE: Names = ["fileData", "file_data"];
const MEDIA_TYPE: Names = ["mimeType", "mime_type"];
const FILE_URL: Names = ["fileUri", "file_uri"];
const GROUNDING: Names = ["groundingMetadata", "grounding_metadata"];
const CHUNKS: Names = ["groundingChunks", "grounding_chunks"];
const CITATIONS: Names = ["citationMetadata", "citation_metadata"];
/// The end of the word that stands for no reason at all.
const UNSPECIFIED: &str = "_UNSPECIFIED";

/// Reads the frames of one reply.
#[derive(Default)]
pub(crate) struct Reader {
    /// The number of the reply's calls, which is the index of the next call.
    calls: u64,
    /// The number of the block of text. Code, and the result of code, are blocks of their own.
    block: u64,
    /// The last signature at a part before the next call.
    signature: Option<String>,
    counts: Counts,
}

/// The counts of tokens. A frame may have some of them, and a later frame repeats them with higher numbers.
#[derive(Default)]
struct Counts {
    prompt: u32,
    /// The tokens of the results of Google's own tools.
    tool_use: u32,
    cached: u32,
    candidates: u32,
    thoughts: u32,
}

impl ReplyReader for Reader {
    fn read(
        &mut self,
        frame: &Value,
        text: &str,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        if let Some(usage) = field(frame, USAGE) {
            self.counts.read(usage);
            received.usage = self.counts.usage();
        }
        let feedback = field(frame, FEEDBACK).unwrap_or(&Value::Null);
        if let Some(reason) = reason(feedback, BLOCK_REASON) {
            refuse(reason, word(feedback, BLOCK_MESSAGE), received);
            return Ok(());
        }
        let candidates = items(&frame["candidates"]);
        let is_first = |candidate: &Value| candidate["index"].as_u64().unwrap_or_default() == 0;
        let Some(position) = candidates.iter().position(is_first) else {
            return Ok(());
        };
        let candidate = &candidates[position];
        let parts = items(&candidate["content"]["parts"]);
        let has_call = parts.iter().any(|part| field(part, CALL).is_some());
        let path = [
            Step::Key("candidates"),
            Step::At(position),
            Step::Key("content"),
            Step::Key("parts"),
        ];
        let written = if has_call {
            raw_items(text, &path)
        } else {
            Vec::new()
        };
        let grounding = field(candidate, GROUNDING).unwrap_or(&Value::Null);
        let cited = field(candidate, CITATIONS).unwrap_or(&Value::Null);
        for list in [
            field(grounding, CHUNKS),
            field(cited, ["citations", "citationSources"]),
        ] {
            received.citations.hear_list(list.unwrap_or(&Value::Null));
        }
        for (order, part) in parts.iter().enumerate() {
            self.part(part, written.get(order), received, hearing)?;
        }
        if let Some(reason) = reason(candidate, FINISH_REASON) {
            received.ended(reason);
            let message = word(candidate, FINISH_MESSAGE);
            received.end.detail = message.map(|message| format!("{reason}: {message}"));
        }
        Ok(())
    }
}

impl Reader {
    /// Reads a part. `written` is the part as the provider wrote it.
    fn part(
        &mut self,
        part: &Value,
        written: Option<&String>,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError> {
        if let Some(signature) = word(part, SIGNATURE) {
            self.signature = Some(signature.to_owned());
        }
        if let Some(text) = part["text"].as_str() {
            if part["thought"] == true {
                hearing.hear(Part::Reasoning, text)?;
            } else {
                hearing.hear_block(Part::Text, (self.block, 0), text)?;
            }
        }
        for text in [code(part), code_result(part), file(part)] {
            self.say_block(text.as_deref().unwrap_or_default(), hearing)?;
        }
        match field(part, CALL) {
            Some(call) => self.call(call, written, received),
            None => Ok(()),
        }
    }

    /// Says a text as a block of its own.
    fn say_block(&mut self, text: &str, hearing: &mut Hearing<'_>) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        hearing.hear_block(Part::Text, (self.block + 1, 0), text)?;
        self.block += 2;
        Ok(())
    }

    /// Reads a call, which is whole in its part.
    fn call(
        &mut self,
        call: &Value,
        written: Option<&String>,
        received: &mut Received,
    ) -> Result<(), ModelError> {
        if field(call, PARTIAL).is_some() || field(call, CONTINUED) == Some(&Value::Bool(true)) {
            return Err(invalid(
                "The model's arguments came in parts: take `streamFunctionCallArguments` out of `extra_body`.",
            ));
        }
        let arguments = match &call["args"] {
            Value::Null => Arguments::None,
            Value::String(letters) => Arguments::Letters(letters),
            value => {
                let of = |name| raw(written?, &[Step::Key(name), Step::Key("args")]);
                let raw = CALL.into_iter().find_map(of);
                Arguments::Whole(raw.unwrap_or_else(|| value.to_string()))
            }
        };
        let (id, name) = (call["id"].as_str(), call["name"].as_str());
        // The last part of a stream of arguments is an empty call.
        if id.is_none() && name.is_none() && arguments == Arguments::None {
            return Ok(());
        }
        let position = received.calls.hear(&Piece {
            index: Some(self.calls),
            order: None,
            id,
            name,
            arguments,
        })?;
        self.calls += 1;
        received.calls.followed();
        match self.signature.take() {
            Some(signature) => received.calls.sign(position, signature),
            None => Ok(()),
        }
    }
}

impl Counts {
    fn read(&mut self, usage: &Value) {
        let fields: [(&mut u32, Names); 5] = [
            (&mut self.prompt, ["promptTokenCount", "prompt_token_count"]),
            (
                &mut self.tool_use,
                ["toolUsePromptTokenCount", "tool_use_prompt_token_count"],
            ),
            (
                &mut self.cached,
                ["cachedContentTokenCount", "cached_content_token_count"],
            ),
            (
                &mut self.candidates,
                ["candidatesTokenCount", "candidates_token_count"],
            ),
            (
                &mut self.thoughts,
                ["thoughtsTokenCount", "thoughts_token_count"],
            ),
        ];
        for (kept, names) in fields {
            if let Some(number) = field(usage, names) {
                *kept = count(number, "");
            }
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.prompt.saturating_add(self.tool_use),
            output_tokens: self.candidates.saturating_add(self.thoughts),
            cached_tokens: self.cached,
            cache_write_tokens: 0,
            reasoning_tokens: self.thoughts,
            estimated: false,
        }
    }
}

/// Ends a reply to a prompt that the provider refused.
fn refuse(reason: &str, message: Option<&str>, received: &mut Received) {
    let message = message.map(|message| format!(": {message}"));
    received.end = End {
        word: Some(format!("content_filter: {reason}")),
        detail: Some(format!("{reason}{}", message.unwrap_or_default())),
    };
    received.progress = Progress::Over;
}

/// Returns code that the provider runs, as a block of Markdown.
fn code(part: &Value) -> Option<String> {
    let code = field(part, CODE)?;
    let language = code["language"].as_str().unwrap_or_default();
    let language = Some(language).filter(|it| !it.ends_with(UNSPECIFIED));
    let language = language.unwrap_or_default().to_lowercase();
    Some(fenced(&language, code["code"].as_str()?))
}

/// Returns the output of code, or the reason why the code has none, as a block of Markdown.
fn code_result(part: &Value) -> Option<String> {
    let result = field(part, CODE_RESULT)?;
    let output = result["output"].as_str().filter(|text| !text.is_empty());
    let outcome = result["outcome"].as_str().filter(|it| *it != "OUTCOME_OK");
    Some(fenced("", output.or(outcome)?))
}

/// Returns a sentence in place of a file, because a reply keeps no files.
fn file(part: &Value) -> Option<String> {
    if let Some(file) = field(part, INLINE_FILE) {
        let media_type = word(file, MEDIA_TYPE).unwrap_or("unknown");
        return Some(format!(
            "(Here the reply had a file of type {media_type}, which is not kept.)"
        ));
    }
    let url = word(field(part, LINKED_FILE)?, FILE_URL)?;
    Some(format!("(Here the reply had a file: {url})"))
}

/// Returns a block of Markdown. The fence is longer than the fences in the text.
fn fenced(language: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// Returns a field under either of its names.
fn field(of: &Value, names: Names) -> Option<&Value> {
    let mut values = names.into_iter().map(|name| &of[name]);
    values.find(|value| !value.is_null())
}

fn word(of: &Value, names: Names) -> Option<&str> {
    field(of, names)?.as_str().filter(|text| !text.is_empty())
}

/// Returns the reason in a field. A protobuf library may write out the value that stands for no reason.
fn reason(of: &Value, names: Names) -> Option<&str> {
    word(of, names).filter(|reason| !reason.ends_with(UNSPECIFIED))
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}
