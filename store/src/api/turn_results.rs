//! The results of turns, and the calls of agents over MCP.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{ConversationName, event::Event, ids, words::AgentExecutionStatus};
use sqlx::FromRow;

use super::{Access, Result};

/// Reads the results of turns. For gateways.
#[async_trait]
pub trait TurnResults: Send + Sync {
    /// Returns the turn of a user's message, with the answer of an ended turn. Returns `None` for a message that is
    /// missing or invisible.
    async fn turn_result(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<Option<TurnResult>>;

    /// Returns the visible message of a call over MCP, by the client's id that [`mcp_message_id`] has made.
    async fn mcp_call(&self, access: &Access, client_message_id: &str) -> Result<Option<McpCall>>;

    /// Returns the messages of the tenant's calls over MCP behind `after`, the newest first, at most `limit`. The list
    /// has the calls of every owner, so that the store reads a bounded number of rows; [`McpCall::is_visible`] is false
    /// for a call that the caller must not see.
    async fn mcp_calls(
        &self,
        access: &Access,
        after: Option<&McpCallCursor>,
        limit: u32,
    ) -> Result<Vec<McpCall>>;
}

/// Makes the client's id of a message that a call over MCP sends. Every gateway makes the same id for a key of an owner,
/// and different owners with equal keys get different ids. Only these ids begin with `mcp_` in the store's indexes.
pub fn mcp_message_id(access: &Access, key: &str) -> String {
    let owner_id = access.owner_id.as_deref().unwrap_or_default();
    let hash = ids::caller_hash(&["mcp", &access.tenant_id, owner_id, key]);
    format!("mcp_{hash}")
}

/// A user's message and the state of its turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// The time at which the gateway accepted the message.
    pub created_at: DateTime<Utc>,
    /// The state of the turn.
    pub state: TurnState,
}

/// The state of a message's turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnState {
    /// The message waits for its turn.
    Waiting,
    /// The turn runs.
    Running {
        /// The turn's first message.
        turn_message_id: String,
        /// The beginning of the turn.
        started_at: DateTime<Utc>,
    },
    /// The turn has ended.
    Ended {
        /// The turn's first message.
        turn_message_id: String,
        /// How the turn ended.
        status: AgentExecutionStatus,
        /// The code of the failure.
        error_code: Option<String>,
        /// The beginning of the failure's sentence.
        error_message: Option<String>,
        /// The time of the end.
        finished_at: DateTime<Utc>,
        /// The last events of the turn: the event `assistant_message` with the answer, if the turn ended with a text, and
        /// the end.
        events: Vec<Event>,
    },
}

/// A message that a call over MCP has sent.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct McpCall {
    /// The conversation.
    pub conversation_id: String,
    /// The message.
    pub message_id: String,
    /// The time at which the gateway accepted the message.
    pub created_at: DateTime<Utc>,
    /// False for a message that the caller must not see.
    pub is_visible: bool,
}

impl McpCall {
    /// Returns the conversation's name.
    pub fn conversation_name(&self) -> &str {
        ConversationName::of_id(&self.conversation_id)
    }

    /// Returns the position of the call in the list of calls.
    pub fn cursor(&self) -> McpCallCursor {
        McpCallCursor {
            created_at: self.created_at,
            message_id: self.message_id.clone(),
        }
    }
}

/// A position in the list of calls, which are ordered by their age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpCallCursor {
    /// `created_at` of the row.
    pub created_at: DateTime<Utc>,
    /// The message, which breaks ties.
    pub message_id: String,
}
