//! What the store can do, in small traits by who needs it: readers of the event log, the gateway that accepts
//! messages, the worker that runs turns, the operator who removes what is old, whoever asks who a caller is (`keys`), and
//! whoever answers tool calls from outside (`outside`).

mod keys;
mod outside;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    event::Event,
    turn::{AgentDefinition, LlmCompleteState, SaveRequest, SaveResult, ToolCall},
};

mod executions;
mod retention;
mod tool_results;

pub use self::{
    executions::*,
    keys::{ApiKey, KeyKind, Keys, NewKey},
    outside::{OutsideTool, OutsideTools},
    retention::*,
    tool_results::{ResultRange, ResultSlice, ToolResults},
};
pub use crate::{
    error::Result,
    list::{ListFilter, ListPage, ListPlace, ListQuery},
};

/// Who asks. Part of every query that is made for a caller: what they may not see is as if it were not there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Access {
    /// The tenant whose conversations they see.
    pub tenant_id: String,
    /// Only this owner's; `None`: every owner's of the tenant.
    pub owner_id: Option<String>,
}

impl Access {
    /// Every conversation of a tenant.
    pub fn tenant(tenant_id: impl Into<String>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            owner_id: None,
        }
    }

    /// One owner's conversations.
    pub fn owner(tenant_id: impl Into<String>, owner_id: impl Into<String>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            owner_id: Some(owner_id.into()),
        }
    }

    /// True when they may see what belongs to this tenant and owner.
    pub fn sees(&self, tenant_id: &str, owner_id: &str) -> bool {
        self.tenant_id == tenant_id && self.owner_id.as_ref().is_none_or(|own| own == owner_id)
    }
}

/// Reads the event log. Everything a gateway needs to replay and follow a conversation (A6).
#[async_trait]
pub trait EventReader: Send + Sync {
    /// Events with `sequence_number >= from_sequence`, in order, at most `limit` of them. Unknown
    /// conversation: an empty page.
    async fn events(
        &self,
        access: &Access,
        conversation_id: &str,
        from_sequence: u32,
        limit: u32,
    ) -> Result<EventPage>;

    /// Where the conversation stands (B3); `None` when there is no such conversation. Answers from the store
    /// alone, with no worker alive.
    async fn conversation_status(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationStatus>>;

    /// The largest sequence number of each of these conversations, in no order; those that do not exist are left
    /// out. A gateway finds with it what announcements it missed.
    async fn last_sequences(&self, conversation_ids: &[String]) -> Result<Vec<(String, u32)>>;
}

/// A page of the event log.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, by rising sequence number.
    pub events: Vec<Event>,
    /// Exact: true when at least one more event is stored behind this page.
    pub has_more: bool,
}

/// Where a conversation stands (B3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationStatus {
    /// A turn is running or a message waits for its turn.
    pub is_running: bool,
    /// The largest sequence number; 0 before the first event.
    pub last_sequence: u32,
    /// The message whose turn is running, else the one that waits longest.
    pub current_message_id: Option<String>,
}

/// Conversations and the messages they accept. Written by the gateway.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Creates the conversation, or returns the stored one when its id is taken; `None` when it is taken by one
    /// that the new one's owner may not see.
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>>;

    /// One conversation.
    async fn conversation(&self, access: &Access, id: &str) -> Result<Option<Conversation>>;

    /// A page of the conversations, the last updated first.
    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage>;

    /// Gives the conversation another title, and leaves it at its place in lists; `None` when there is no such
    /// conversation.
    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: &str,
    ) -> Result<Option<Conversation>>;

    /// Removes the conversation with all its rows, in one transaction, whatever runs in it; false when there is no
    /// such conversation. Who still works on it finds nothing: [`StoreError::NotFound`]. For a day no turn creates
    /// it again ([`TurnStore::begin_turn`]); [`Conversations::create_conversation`] may at once.
    ///
    /// One transaction however much there is, so that nobody ever reads half a conversation. 100,000 events take about
    /// a second, for which SQLite's other writers wait. About a million reach PostgreSQL's statement time-out: the call
    /// is then [`StoreError::Unavailable`] each time, and the conversation stays.
    ///
    /// [`StoreError::Unavailable`]: crate::StoreError::Unavailable
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn delete_conversation(&self, access: &Access, id: &str) -> Result<bool>;

    /// Stores a message as `queued` (invariant 9). When the conversation already has a message with this
    /// `client_message_id`, that one is returned and nothing is written; [`StoreError::OtherContent`] when it has
    /// another text. [`StoreError::QueueFull`] when `max_queued` messages wait; [`StoreError::TooManyTurns`] when the
    /// tenant has `max_turns`; [`StoreError::NotFound`] when there is no such conversation.
    ///
    /// [`StoreError::OtherContent`]: crate::StoreError::OtherContent
    /// [`StoreError::QueueFull`]: crate::StoreError::QueueFull
    /// [`StoreError::TooManyTurns`]: crate::StoreError::TooManyTurns
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage>;

    /// Removes a message that still waits, as if it had never been accepted; false when a turn has taken it, or it is
    /// not there.
    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool>;

    /// From where the conversation goes on when no workflow runs for it (B5), with at most `max_waiting` messages;
    /// `None` when there is no such conversation.
    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>>;
}

/// A conversation to create.
#[derive(Debug, Clone)]
pub struct NewConversation {
    /// Unique; see `ids::is_valid`.
    pub id: String,
    /// Who creates it, and so owns it. Without an owner it belongs to the tenant alone.
    pub access: Access,
    /// Agent that answers.
    pub agent: String,
    /// Shown in lists; empty: the first message's beginning takes its place.
    pub title: String,
}

/// A conversation as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// Who of the tenant; empty: nobody in particular.
    pub owner_id: String,
    /// Agent that answers.
    pub agent: String,
    /// Title, possibly empty.
    pub title: String,
    /// User messages taken into turns plus final assistant messages (B8).
    pub message_count: u32,
    /// The largest sequence number; 0 before the first event.
    pub last_sequence: u32,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When its last event was saved, or it was created.
    pub updated_at: DateTime<Utc>,
}

/// A message to accept.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The conversation.
    pub conversation_id: String,
    /// Id for the message when it is new.
    pub message_id: String,
    /// The client's own id (an idempotency key), unique in the conversation.
    pub client_message_id: Option<String>,
    /// The text.
    pub content: String,
    /// Refuse when this many wait in the conversation already.
    pub max_queued: u32,
    /// Refuse when turns run or messages wait in this many other conversations of the tenant; 0: never. Messages that
    /// arrive at the same instant in several conversations may pass it together: no lock is worth that.
    pub max_turns: u32,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Its id: the stored one's when the client had sent it before.
    pub message_id: String,
    /// False when it was stored before.
    pub is_new: bool,
    /// The turn that has taken it; `None` while it waits.
    pub turn: Option<TakenBy>,
}

impl QueuedMessage {
    /// False when a turn has already taken it.
    pub fn is_waiting(&self) -> bool {
        self.turn.is_none()
    }
}

/// The turn that took a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBy {
    /// The message it began with: another one when the message joined it by steering.
    pub message_id: String,
    /// False once it has ended.
    pub is_running: bool,
}

/// From where a conversation goes on whose workflow is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// The turn that has begun and not ended.
    pub turn: Option<UnfinishedTurn>,
    /// Messages that wait, in order.
    pub waiting: Vec<String>,
    /// Any turn has ever begun.
    pub has_begun: bool,
}

/// A turn that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// The message it began with.
    pub message_id: String,
    /// Step of its last `llm_complete`; `None` before the first.
    pub checkpoint_step: Option<u32>,
}

/// What a worker needs to run turns. The claims make a call paid once (invariant 5) and a tool done once
/// (invariant 6).
#[async_trait]
pub trait TurnStore: Send + Sync {
    /// Takes a message into its turn: creates the conversation when it is unknown, stores the agent by its
    /// hash, inserts the execution, marks the message taken and appends `user_message`, in one transaction.
    /// Repeating it returns what is stored. [`StoreError::NotFound`] when the message has neither a row nor
    /// content, or the conversation was deleted less than a day ago.
    ///
    /// A turn that says it runs while another begins has lost its workflow: the engine runs one a conversation, and
    /// goes on to the next message only when the turn has ended here. It is ended first, with `turn_lost`.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn begin_turn(&self, begin: BeginTurn) -> Result<BegunTurn>;

    /// Begins the sub-agent of a `delegate` call (D3): its row, its task and `sub_agent_start`, and the call runs from
    /// now on, in one transaction. `agents` are those configured now, by name. Repeating it returns what is stored.
    ///
    /// A call that may not have a sub-agent (limits, wrong arguments) is ended with an error for the model; one that
    /// has ended gets none. Both give a status that is not running.
    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
    ) -> Result<BegunTurn>;

    /// Name of the conversation's agent; `None` when there is no such conversation.
    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>>;

    /// A definition by its hash.
    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>>;

    /// A thread's messages for the model (`ids::thread`), oldest first: the newest `limit` of those that turns have
    /// taken, never cutting an assistant's tool calls from what came before them in the same turn.
    async fn context(
        &self,
        conversation_id: &str,
        thread: &str,
        limit: u32,
    ) -> Result<Vec<ContextMessage>>;

    /// Call ids already used in the conversation, of those given (D1).
    async fn used_call_ids(
        &self,
        conversation_id: &str,
        call_ids: &[String],
    ) -> Result<Vec<String>>;

    /// Those of these tools that need no more approvals in the conversation.
    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<String>>;

    /// Claims the LLM call of a step: the stored `llm_complete`, or a new generation (invariant 5).
    async fn claim_step(&self, step: &StepKey) -> Result<StepClaim>;

    /// Stores `llm_complete`. The first one wins; a loser gets the winner's.
    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<LlmCompleteState>;

    /// Stores the text so far of a call that was stopped (`llm_partial`; the newest generation wins). Read by a
    /// cancelled end only; [`TurnStore::claim_step`] does not see it.
    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()>;

    /// Claims a tool execution before it runs; writes the checkpoint `tool_start` when it may run
    /// (invariant 6). `claimant` names who asks, not empty and never used by anyone else: when the answer of a claim
    /// was lost (a connection broke at the commit), the same claimant asks again and may run it.
    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim>;

    /// Records how a tool execution ended. The first one wins; a loser gets the winner's.
    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord>;

    /// Saves one batch in one transaction (invariants 2 and 3). A batch whose key is stored, and any batch
    /// after the execution's end, changes nothing; both return what is stored.
    async fn save(&self, request: &SaveRequest) -> Result<Saved>;
}

/// The turn to begin.
#[derive(Debug, Clone)]
pub struct BeginTurn {
    /// The conversation; created when unknown.
    pub conversation_id: String,
    /// Tenant of the conversation when it is created.
    pub tenant_id: String,
    /// The message that starts the turn.
    pub message_id: String,
    /// Its text; empty when the row in `messages` has it.
    pub content: String,
    /// The turn's agent execution.
    pub agent_execution_id: String,
    /// The agent as configured now; ignored when the execution is already pinned to one.
    pub agent: AgentDefinition,
}

/// A turn that was begun, now or before.
#[derive(Debug, Clone, PartialEq)]
pub struct BegunTurn {
    /// `execution_status::RUNNING`, or how the turn ended.
    pub status: String,
    /// The definition it is pinned to.
    pub agent: AgentDefinition,
    /// Hash of the definition.
    pub agent_hash: String,
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Texts of lost turns that were ended now: (agent execution, step).
    pub sealed: Vec<(String, u32)>,
    /// How long ago it began.
    pub age: Duration,
}

/// One step of one agent execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepKey {
    /// The conversation.
    pub conversation_id: String,
    /// The message whose turn it is.
    pub message_id: String,
    /// The agent execution.
    pub agent_execution_id: String,
    /// 0-based.
    pub step: u32,
}

/// Answer to a claim of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepClaim {
    /// The call was already made and paid.
    Stored(LlmCompleteState),
    /// Make the call; its deltas carry this generation.
    Call {
        /// Larger than any given for this execution before.
        generation: u32,
    },
}

/// One tool execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolKey {
    /// The conversation.
    pub conversation_id: String,
    /// The message whose turn it is.
    pub message_id: String,
    /// The agent execution that asked.
    pub agent_execution_id: String,
    /// The step that asked.
    pub step: u32,
    /// The tool execution.
    pub execution_id: String,
}

/// Answer to a claim of a tool execution.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolClaim {
    /// Run it.
    Run(ToolRecord),
    /// It ended before; use the record.
    Ended(ToolRecord),
    /// An earlier attempt began and left nothing, and the tool may not run twice.
    OutcomeUnknown(ToolRecord),
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnd {
    /// One of the final `tool_status`.
    pub status: String,
    /// What the model and the readers see.
    pub result: Json,
    /// The whole result when `result` was cut.
    pub full_result: Option<Json>,
    /// True when `result` describes an error.
    pub is_error: bool,
    /// Wall time, for the observe event.
    pub duration_ms: u32,
    /// Events the tool itself emits, saved before its observe: (type, data).
    pub events: Vec<(String, Json)>,
}

/// A row of `tool_execution_records`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRecord {
    /// The call as the model made it; its input as it was approved.
    pub call: ToolCall,
    /// One of `tool_status`.
    pub status: String,
    /// Attempts that were allowed to run, this one included.
    pub attempt: u32,
    /// How it ended, once it has.
    pub end: Option<ToolEnd>,
    /// One of `words::approval`.
    pub approval: String,
}

/// What a save left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// What is stored.
    pub result: SaveResult,
    /// Texts that this batch's events replace on every reader: (agent execution, step).
    pub sealed: Vec<(String, u32)>,
}

/// A message as the model's context sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
    /// Calls of an assistant message, in call order.
    pub tool_calls: Vec<ToolCall>,
    /// Results of those calls that ended.
    pub tool_results: Vec<ToolResult>,
}

/// The result of one tool call as the model sees it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolResult {
    /// Our id of the execution.
    pub execution_id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its result.
    pub result: Json,
    /// True when the result describes an error.
    pub is_error: bool,
}
