//! The size of a context in relation to the model's window, and the choice of messages that a summary replaces.
//!
//! Sizes are counted in bytes and converted into tokens by the provider's last count. No I/O is here.

use std::collections::BTreeSet;

use everturn_models::{BytesPerToken, ModelRequest, TokenEstimate, estimated_bytes, named_by};
use everturn_proto::{
    limits::MAX_SENT_FILES,
    turn::{AgentDefinition, CompactedContext, NamedFile, SentContext, SentTool, ToolCall},
    words::MessageRole,
};
use everturn_store::{
    ContextMessage, ToolResult,
    model_input::{DEFAULT_WINDOW, characters, shorten_results},
};
use everturn_tools::ToolSpec;

/// A context above this share of the window is compacted. The rest is for the answer, and for the error of the
/// estimate.
const FULL_PERCENT: u64 = 80;
/// The share of the window that remains after a compaction. It is small, so that compactions are rare: between two
/// compactions, every request begins with the whole request before, which a provider reads from its cache.
const KEEP_PERCENT: u64 = 30;
/// The largest share of the window that is sent for a summary.
const SUMMARIZE_PERCENT: u64 = 75;
/// The share of a context that is kept after the provider has refused the context as too long. The real window is then
/// smaller than the configured window.
const KEEP_OF_REFUSED_PERCENT: usize = 25;
/// The start of the kept messages, in percent of the number of read messages, when not every message could be read.
const KEEP_OF_READ_FROM: usize = 70;
/// The estimated bytes of a message beside its texts: names of fields, brackets.
const MESSAGE_BYTES: usize = 32;

/// The context window of an agent's model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    tokens: u64,
    measure: BytesPerToken,
}

/// The reason for a compaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Room {
    /// The room is too small. `has_more`: newer messages exist that were not even read.
    Left { has_more: bool },
    /// The provider has refused a request of `bytes` bytes as too long.
    Refused { bytes: usize },
}

/// The messages that a summary will replace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OldPart {
    /// The stored record of the replaced messages.
    pub(super) compacted: CompactedContext,
    /// The messages for the summary: the messages up to `end`, or only from `begin` on when the whole part is too long.
    pub(super) begin: usize,
    pub(super) end: usize,
}

impl Window {
    pub(super) fn of(agent: &AgentDefinition, measure: BytesPerToken) -> Self {
        Self {
            tokens: u64::from(Self::size_of(agent)),
            measure,
        }
    }

    /// Returns the tokens of the window of an agent's model.
    pub(super) fn size_of(agent: &AgentDefinition) -> u32 {
        agent.context_window.unwrap_or(DEFAULT_WINDOW)
    }

    /// Shortens the results of steps that would take too much of the window. Returns whether a result was shortened.
    pub(super) fn shorten_results(self, messages: &mut [ContextMessage]) -> bool {
        shorten_results(messages, self.tokens)
    }

    /// Returns the estimated tokens of a request of `bytes` bytes.
    pub(super) fn tokens(self, bytes: usize) -> u64 {
        self.measure.tokens(bytes)
    }

    /// Returns the estimated tokens of a call of the agent's model with a request of `bytes` bytes.
    pub(super) fn estimate(self, agent: &AgentDefinition, bytes: usize) -> TokenEstimate {
        TokenEstimate {
            input: u32::try_from(self.tokens(bytes)).unwrap_or(u32::MAX),
            longest_answer: agent.longest_answer(),
            measure: self.measure,
        }
    }

    /// True when a request of `bytes` bytes leaves too little room.
    pub(super) fn is_full(self, bytes: usize) -> bool {
        self.tokens(bytes) > self.tokens * FULL_PERCENT / 100
    }

    /// Returns the messages to replace, so that the newest messages remain; `None` when no message can be replaced. The
    /// person's request of this turn is kept.
    pub(super) fn old_part(
        self,
        messages: &[ContextMessage],
        agent_execution_id: &str,
        room: Room,
    ) -> Option<OldPart> {
        let keep = self.measure.bytes(self.tokens * KEEP_PERCENT / 100);
        let end = match room {
            Room::Left { has_more: false } => first_within(messages, keep),
            // With so many short messages, the number of messages decides.
            Room::Left { has_more: true } => {
                first_within(messages, keep).max(messages.len() * KEEP_OF_READ_FROM / 100)
            }
            Room::Refused { bytes } => {
                first_within(messages, keep.min(bytes * KEEP_OF_REFUSED_PERCENT / 100))
            }
        };
        let end = match room {
            Room::Left { has_more: true } => end,
            Room::Left { has_more: false } | Room::Refused { .. } => {
                end.min(unseen(messages, agent_execution_id))
            }
        };
        let kept = messages[end..].iter().map(message_bytes).sum();
        if matches!(room, Room::Left { .. }) && self.is_full(kept) {
            // A summary would cost money without making enough room. The provider may have more room.
            return None;
        }
        let old = &messages[..end];
        let is_own = |message: &&ContextMessage| {
            message.role == MessageRole::User && message.agent_execution_id == agent_execution_id
        };
        let is_replaced =
            |message: &&ContextMessage| !is_own(message) && message.role != MessageRole::Summary;
        let last = old.last().filter(|last| !last.is_kept)?;
        let first = old.iter().find(is_replaced)?;
        let replaced = old.iter().filter(is_replaced).count();
        let compacted = CompactedContext {
            through_sequence: last.sequence_number,
            messages: u32::try_from(replaced).unwrap_or(u32::MAX),
            from_sequence: first.sequence_number,
            kept_message_ids: old
                .iter()
                .filter(is_own)
                .map(|message| message.id.clone())
                .collect(),
        };
        let most = self.measure.bytes(self.tokens * SUMMARIZE_PERCENT / 100);
        Some(OldPart {
            compacted,
            begin: first_within(old, most),
            end,
        })
    }
}

/// Returns the index of the step whose results the model has not seen: without the results, the model would repeat its
/// calls.
fn unseen(messages: &[ContextMessage], agent_execution_id: &str) -> usize {
    let asks = |message: &ContextMessage| {
        !message.tool_calls.is_empty() && message.agent_execution_id == agent_execution_id
    };
    messages.iter().rposition(asks).unwrap_or(messages.len())
}

/// Returns the index of the first of the newest messages that together have at most `most_bytes` bytes.
fn first_within(messages: &[ContextMessage], most_bytes: usize) -> usize {
    let mut bytes = 0;
    let mut first = messages.len();
    for (index, message) in messages.iter().enumerate().rev() {
        bytes += message_bytes(message);
        if bytes > most_bytes {
            break;
        }
        first = index;
    }
    first
}

/// Returns the estimated size of a request.
pub(super) fn request_bytes(request: &ModelRequest) -> usize {
    let instructions = request.instructions.as_ref().map_or(0, String::len);
    let tools = request.tools.iter().map(|tool| {
        tool.name.len() + tool.description.len() + tool.parameters.to_string().len() + MESSAGE_BYTES
    });
    let messages = request.messages.iter().map(message_bytes);
    instructions + tools.sum::<usize>() + messages.sum::<usize>()
}

pub(super) fn message_bytes(message: &ContextMessage) -> usize {
    let calls = message.tool_calls.iter().map(call_bytes);
    let results = message.tool_results.iter().map(result_bytes);
    let files = message.attachments.iter().map(estimated_bytes);
    MESSAGE_BYTES
        + message.content.len()
        + calls.sum::<usize>()
        + results.sum::<usize>()
        + files.sum::<usize>()
}

fn call_bytes(call: &ToolCall) -> usize {
    let input = call
        .tool_input
        .as_ref()
        .map_or(0, |input| input.as_str().len());
    let signatures: usize = call.signatures.iter().map(String::len).sum();
    MESSAGE_BYTES + call.call_id.len() + call.tool_name.len() + input + signatures
}

fn result_bytes(result: &ToolResult) -> usize {
    let files = named_by(result);
    let files: usize = files.iter().map(estimated_bytes).sum();
    MESSAGE_BYTES + result.call_id.len() + result.result.as_str().len() + files
}

/// Returns the content of a request, by reference. `known` are the definitions of its tools, and of others.
pub(super) fn sent(request: &ModelRequest, known: &[ToolSpec]) -> SentContext {
    let messages = &request.messages;
    let number = |message: Option<&ContextMessage>| message.map_or(0, |it| it.sequence_number);
    // A message of Everturn itself has no number.
    let stored = |message: &&ContextMessage| message.sequence_number > 0;
    let is_offered = |spec: &&ToolSpec| request.tools.iter().any(|tool| tool.name == spec.name);
    let tools = known.iter().filter(is_offered).map(|tool| SentTool {
        name: tool.name.clone(),
        definition_hash: tool.definition_hash(),
    });
    SentContext {
        messages: u32::try_from(messages.len()).unwrap_or(u32::MAX),
        first_sequence: number(messages.first()),
        last_sequence: number(messages.iter().rev().find(stored)),
        characters: characters(request.instructions.as_deref(), messages),
        tools: tools.collect(),
        files: files(messages),
        received_characters: 0,
    }
}

/// Returns the files of the messages and of their results, each file once.
fn files(messages: &[ContextMessage]) -> Vec<NamedFile> {
    let mut known = BTreeSet::new();
    let of_message = |message: &ContextMessage| {
        let of_results = message.tool_results.iter().flat_map(named_by);
        let of_user = message.attachments.iter().cloned();
        of_user.chain(of_results).collect::<Vec<_>>()
    };
    let all = messages.iter().flat_map(of_message);
    all.filter(|file| known.insert(file.blob_id.clone()))
        .take(MAX_SENT_FILES)
        .map(|file| NamedFile {
            blob_id: file.blob_id,
            media_type: file.media_type,
            file_name: file.file_name,
            bytes: file.bytes,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use everturn_models::Usage;
    use everturn_proto::Json;

    use super::*;

    const LEFT: Room = Room::Left { has_more: false };

    fn user(sequence: u32, of: &str) -> ContextMessage {
        ContextMessage {
            sequence_number: sequence,
            id: format!("m{sequence}"),
            agent_execution_id: of.into(),
            ..ContextMessage::text(MessageRole::User, format!("ask {sequence}"))
        }
    }

    /// A message of the model, with 1,000 bytes.
    fn said(sequence: u32, of: &str) -> ContextMessage {
        ContextMessage {
            sequence_number: sequence,
            id: format!("m{sequence}"),
            agent_execution_id: of.into(),
            ..ContextMessage::text(MessageRole::Assistant, "x".repeat(1000 - MESSAGE_BYTES))
        }
    }

    fn window(tokens: u32) -> Window {
        let agent = AgentDefinition {
            context_window: Some(tokens),
            ..AgentDefinition::default()
        };
        Window::of(&agent, BytesPerToken::default())
    }

    #[test]
    fn a_window_is_measured_by_the_providers_count() {
        let usage = Usage {
            input_tokens: 250,
            ..Usage::default()
        };
        let measured = BytesPerToken::measured(1000, usage).unwrap();
        let window = Window {
            measure: measured,
            ..window(1000)
        };
        assert!(!window.is_full(3200) && window.is_full(3204));
        let estimate = window.estimate(&AgentDefinition::default(), 3204);
        assert_eq!((estimate.input, estimate.measure), (801, measured));
    }

    #[test]
    fn each_file_of_a_request_is_named_once() {
        let file = |id: &str| everturn_proto::event::Attachment {
            blob_id: id.into(),
            file_name: format!("{id}.png"),
            ..Default::default()
        };
        let mut first = user(1, "run");
        first.attachments = vec![file("a"), file("b")];
        let mut second = user(2, "run");
        second.attachments = vec![file("b"), file("c")];
        let named = files(&[first, second]);
        let named: Vec<_> = named.iter().map(|file| file.file_name.as_str()).collect();
        assert_eq!(named, ["a.png", "b.png", "c.png"]);
        let mut many = user(1, "run");
        many.attachments = (0..2 * MAX_SENT_FILES)
            .map(|number| file(&number.to_string()))
            .collect();
        assert_eq!(files(&[many]).len(), MAX_SENT_FILES);
    }

    #[test]
    fn the_oldest_messages_are_replaced_and_the_task_is_kept() {
        // 30 % of 10,000 tokens are 9,000 bytes.
        let mut messages = vec![user(1, "old"), said(2, "old"), user(3, "run")];
        messages.extend((4..24).map(|sequence| said(sequence, "run")));
        messages.insert(8, user(9, "run"));
        let part = window(10_000).old_part(&messages, "run", LEFT).unwrap();
        assert_eq!(messages.len() - part.end, 9);
        assert_eq!(part.begin, 0, "all of it is summarized");
        assert_eq!(part.compacted.from_sequence, 1);
        assert_eq!(
            part.compacted.through_sequence,
            messages[part.end - 1].sequence_number
        );
        assert_eq!(part.compacted.kept_message_ids, ["m3", "m9"]);
        assert_eq!(part.compacted.messages as usize, part.end - 2);
        // What was kept for an earlier turn is replaced; the summary is, too, and is no message.
        let mut messages = vec![ContextMessage::text(MessageRole::Summary, "short")];
        messages.push(ContextMessage {
            is_kept: true,
            ..user(1, "old")
        });
        messages.push(ContextMessage {
            is_kept: true,
            ..user(3, "run")
        });
        messages.extend((30..50).map(|sequence| said(sequence, "run")));
        let part = window(10_000).old_part(&messages, "run", LEFT).unwrap();
        assert_eq!(part.compacted.kept_message_ids, ["m3"]);
        assert_eq!(part.compacted.messages as usize, part.end - 2);
        assert_eq!((part.begin, part.compacted.from_sequence), (0, 1));
    }

    #[test]
    fn nothing_is_replaced_where_nothing_is_old() {
        let task = || user(1, "run");
        assert_eq!(window(10_000).old_part(&[task()], "run", LEFT), None);
        let short = [task(), said(2, "run"), said(3, "run")];
        assert_eq!(window(10_000).old_part(&short, "run", LEFT), None);
        // All that is before the newest messages was kept before.
        let summary = ContextMessage::text(MessageRole::Summary, "short");
        let kept = ContextMessage {
            is_kept: true,
            ..user(1, "old")
        };
        let mut messages = vec![summary, kept];
        messages.extend((2..10).map(|sequence| said(sequence, "run")));
        assert_eq!(window(10_000).old_part(&messages, "run", LEFT), None);
        // There are more messages than could be read.
        let many: Vec<_> = (1..=10).map(|sequence| user(sequence, "old")).collect();
        assert_eq!(window(10_000).old_part(&many, "run", LEFT), None);
        let part = window(10_000).old_part(&many, "run", Room::Left { has_more: true });
        assert_eq!(part.unwrap().compacted.through_sequence, 7);
        // The refusal of a provider counts more than the estimate.
        let part = window(10_000)
            .old_part(&short, "run", Room::Refused { bytes: 2_100 })
            .unwrap();
        assert_eq!((part.end, part.compacted.through_sequence), (3, 3));
    }

    #[test]
    fn results_that_the_model_has_not_seen_are_never_replaced() {
        let call = |bytes: usize| ToolCall {
            tool_input: Some(Json::of(&"x".repeat(bytes))),
            ..ToolCall::default()
        };
        let mut messages: Vec<_> = (2..22).map(|sequence| said(sequence, "run")).collect();
        messages.insert(0, user(1, "run"));
        messages.push(said(22, "run"));
        let last = messages.len() - 1;
        // It has more bytes than are kept otherwise, and leaves room.
        messages[last].tool_calls = vec![call(15_000)];
        let part = window(10_000).old_part(&messages, "run", LEFT).unwrap();
        assert_eq!(part.end, last);
        let refused = Room::Refused { bytes: 30_000 };
        let part = window(10_000).old_part(&messages, "run", refused);
        assert_eq!(part.unwrap().end, last);
        // It alone leaves no room: a summary of the rest would not help.
        messages[last].tool_calls = vec![call(30_000)];
        assert_eq!(window(10_000).old_part(&messages, "run", LEFT), None);
    }

    #[test]
    fn no_more_is_summarized_than_fits() {
        // 75 % of 10,000 tokens are 22,500 bytes.
        let mut messages = vec![user(1, "run")];
        messages.extend((2..102).map(|sequence| said(sequence, "run")));
        let part = window(10_000).old_part(&messages, "run", LEFT).unwrap();
        assert_eq!((part.end, part.begin), (92, 70));
        assert_eq!(
            part.compacted.from_sequence, 2,
            "the rest is replaced all the same"
        );
    }
}
