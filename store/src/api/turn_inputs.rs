//! The inputs of turns: the agent, the owner, texts of messages, the context of a model call, and known definitions of
//! tools.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    Thread,
    event::Attachment,
    turn::{AgentDefinition, ToolCall},
    words::MessageRole,
};

use super::{
    Access, PageLimit, Result,
    tools::{DefinedTool, ToolResult},
};

/// Reads the inputs of turns. For workers: `llm_thinking_activity`, `load_turn_activity` and
/// `begin_after_turn_activity`.
#[async_trait]
pub trait TurnInputs: Send + Sync {
    /// Returns the name of the conversation's agent; `None` for a missing conversation.
    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>>;

    /// Returns the conversation's tenant, owner and name; `None` for a missing conversation.
    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>>;

    /// Returns the definition of an agent by its hash, if stored.
    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>>;

    /// Returns the texts of the stored messages among `message_ids`, by id.
    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>>;

    /// Returns a thread's context for the model, oldest first, up to `limit`: the summary of the compacted messages,
    /// the messages kept at the compaction, and the messages after. Waiting messages are left out. The call reads only
    /// the returned messages. With `read`, the caller's earlier read, the call returns only new messages if they
    /// continue the earlier read.
    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext>;

    /// Returns the tools among `tool_names` that need no more approvals in the conversation, with the definitions
    /// approved by a person.
    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>>;

    /// Returns the definitions of the conversation's last use of the tools. A tool without a use, or without a call
    /// bound to a definition, is left out.
    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>>;
}

/// The context of a model call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelContext {
    /// The messages, oldest first.
    pub messages: Vec<ContextMessage>,
    /// True if the limit excluded newer messages.
    pub has_more: bool,
    /// True if the messages continue the caller's earlier read. False if the messages are the whole context.
    pub goes_on: bool,
}

/// A caller's earlier read of a thread. The read part of a thread never changes, except at a new cut, at a settled outcome
/// (which raises the revision of the last message), or after the database went back to an earlier point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBefore {
    /// The last event before the cut; 0 without a cut.
    pub cut: u32,
    /// The event of the last message.
    pub last_sequence: u32,
    /// The creation time of the last message.
    pub last_created_at: DateTime<Utc>,
    /// The revision of the last message.
    pub last_revision: u32,
}

impl ReadBefore {
    /// Makes the earlier read from its messages; `None` without messages, or for messages that end before the newest
    /// cut.
    pub fn of(messages: &[ContextMessage]) -> Option<Self> {
        let last = messages.last().filter(|last| last.is_after_cut())?;
        let summary = messages
            .first()
            .filter(|first| first.role == MessageRole::Summary);
        Some(Self {
            cut: summary.map_or(0, |summary| summary.sequence_number),
            last_sequence: last.sequence_number,
            last_created_at: last.created_at,
            last_revision: last.revision,
        })
    }

    /// Returns true if the messages continue the earlier read.
    pub(crate) fn goes_on_with(self, messages: &[ContextMessage]) -> bool {
        let first = messages.first();
        first.is_none_or(|it| it.is_after_cut() && it.sequence_number > self.last_sequence)
    }
}

/// A message in the model's context.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct ContextMessage {
    /// The author's role.
    #[sqlx(try_from = "String")]
    pub role: MessageRole,
    /// The text.
    pub content: String,
    /// The tool calls of an assistant message, in call order.
    #[sqlx(json)]
    pub tool_calls: Vec<ToolCall>,
    /// The results of the ended tool calls.
    #[sqlx(json)]
    pub tool_results: Vec<ToolResult>,
    /// The blobs of a user's message.
    #[sqlx(json)]
    pub attachments: Vec<Attachment>,
    /// The message's event in the timeline. For a summary: the last summarized event.
    #[sqlx(try_from = "i64")]
    pub sequence_number: u32,
    /// The id; empty for a summary.
    pub id: String,
    /// The agent execution that has taken or written the message; empty for a summary.
    pub agent_execution_id: String,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The number of changes of the message, or of an earlier message of the thread, after the message was added. 0 for a
    /// summary, and in the input of a past call.
    #[sqlx(try_from = "i64", default)]
    pub revision: u32,
    /// True for a message before the newest cut that remains in the context.
    pub is_kept: bool,
}

impl ContextMessage {
    /// Makes a message with only a role and a text.
    pub fn text(role: MessageRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            attachments: Vec::new(),
            sequence_number: 0,
            id: String::new(),
            agent_execution_id: String::new(),
            created_at: DateTime::default(),
            revision: 0,
            is_kept: false,
        }
    }

    /// Returns true for a message after the newest cut.
    fn is_after_cut(&self) -> bool {
        self.role != MessageRole::Summary && !self.is_kept
    }

    /// Returns true for a cut answer of the model that continues in the next message, or must continue now.
    pub fn goes_on_in(&self, next: Option<&Self>) -> bool {
        self.role == MessageRole::Assistant
            && self.tool_calls.is_empty()
            && next.is_none_or(|next| next.role == MessageRole::Assistant)
    }
}
