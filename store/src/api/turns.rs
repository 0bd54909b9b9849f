//! The calls of workers that run turns.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    LogId, SealedStep, Thread,
    event::Attachment,
    turn::{AgentDefinition, LlmCompleteState, SaveRequest, SaveResult, ToolCall},
    words::{AgentExecutionStatus, MessageRole},
};

use super::{
    Access, BackgroundResponse, ChainPosition, DayBudget, Estimate, FailedCall, NotedFailure,
    PageLimit, Reservation, Result, WorkerId,
    tools::{DefinedTool, StepKey, ToolClaim, ToolEnd, ToolKey, ToolRecord, ToolResult},
};

/// The calls of workers that run turns. Claims prevent a second payment for a model call (invariant 5, paid once) and a
/// second run of a tool (invariant 6, done once).
#[async_trait]
pub trait TurnStore: Send + Sync {
    /// Begins a turn for a run of the conversation's workflow.
    ///
    /// Takes a message into its turn in one transaction: creates an unknown conversation, stores the agent by its hash,
    /// inserts the agent execution, marks the message taken and appends `user_message`. A repeated call returns the
    /// stored turn. Returns [`StoreError::NotFound`] if the message has neither a row nor content, or if the
    /// conversation was deleted less than a day ago. Returns [`StoreError::ForeignConversation`] if the conversation
    /// belongs, or would belong, to another tenant than the run's tenant.
    ///
    /// If another turn counts as running, that turn has lost its workflow: Temporal runs one workflow per conversation,
    /// and the workflow continues with the next message only after the turn has ended in the store. The call first ends
    /// the lost turn with `turn_lost`. But Temporal may have ended the run of this call, and the request may be late.
    /// Therefore, beside a running turn, the run gets an epoch and asks again with the epoch (invariant 11, one run).
    ///
    /// `begin.on_unknown_agent` decides about a turn with an agent unknown to the worker.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    /// [`StoreError::ForeignConversation`]: crate::StoreError::ForeignConversation
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart>;

    /// Begins the sub-agent of a `delegate` call in one transaction: writes the sub-agent's row, its task and
    /// `sub_agent_start`, and marks the call running. `agents` are the configured agents by name. A repeated call
    /// returns the stored sub-agent.
    ///
    /// A refused `delegate` call (limits, wrong arguments) ends with an error for the model. An ended `delegate` call
    /// gets no sub-agent. The returned status is not running in either case. A call with an agent missing in `agents`
    /// is refused, too, unless `on_unknown` decides otherwise.
    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn>;

    /// Returns the name of the conversation's agent; `None` for a missing conversation.
    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>>;

    /// Returns the conversation's tenant, owner and name; `None` for a missing conversation.
    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>>;

    /// Returns the texts of the stored messages among `message_ids`, by id.
    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>>;

    /// Stores the records of a turn's hooks that run after the turn, as pending, unless stored already. The number of
    /// `step` is `ids::AFTER_TURN_STEP`. The hooks have no events. Returns false, and stores no record, if too many
    /// hooks of the conversation's other turns have not ended (`limits::MAX_HOOKS_AFTER_TURNS`).
    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool>;

    /// Returns the definition of an agent by its hash, if stored.
    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>>;

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

    /// Claims the LLM call of a step: returns the stored `llm_complete` or a new generation (invariant 5, paid once).
    /// `worker` is the calling process; `None` for a process without a lease.
    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim>;

    /// Gives back a claim without a call. The call does not count. A newer claim of the step stays unchanged.
    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()>;

    /// Reserves a part of the turn's budget for a claimed call ([`ClaimedCall::has_budget`]), before the call is made.
    /// A worker may repeat the reservation of a call. `other_model` is the called model (`<provider>/<model>`), if the
    /// model is not the agent's own.
    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation>;

    /// Gives back the reservation of a call that the provider refused without cost.
    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<()>;

    /// Stores the provider's background response of a claimed call, in place of an earlier response. The step's next
    /// claim returns the response. Returns false, and changes no row, if the call is useless: the step was claimed
    /// again, the agent execution has ended, or a newer run has taken over.
    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool>;

    /// Notes a failed call of a model in a chain. The step's next claim returns the step's position. A switch to
    /// another model appends the switch's event in the same transaction, once, and deletes the call's background
    /// response.
    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure>;

    /// Returns true while the agent execution runs and `generation` is the newest claim. A model call with a lost claim
    /// costs money and has no use.
    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool>;

    /// Stores `llm_complete` and returns the stored reply: the first reply wins. A tool call's id is unique in its
    /// conversation, therefore the store refuses a reply with a used id.
    async fn complete_step(&self, step: &StepKey, state: LlmCompleteState)
    -> Result<CompletedStep>;

    /// Stores the partial text of a stopped call (`llm_partial`; the newest generation wins). Only an end that cuts the
    /// turn short reads the partial text. [`TurnStore::claim_step`] ignores the partial text.
    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()>;

    /// Claims a tool execution before its run, and writes the checkpoint `tool_start` if the tool may run (invariant 6,
    /// done once). `claimant` names the attempt ([`WorkerId::claimant`], or the run of a remote tool). The name is not
    /// empty, and no other attempt ever uses the name. After a lost response (a connection broke at the commit), the
    /// claimant asks again and may run the tool.
    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim>;

    /// Gives back the claim of a tool that the claimant did not run. The tool becomes pending again, without a trace of
    /// the claim. Another claimant's claim and an ended tool stay unchanged.
    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<()>;

    /// Records the end of a tool execution, and returns the stored record: the first end wins.
    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord>;

    /// Saves one batch in one transaction (invariants 2, one order, and 3, idempotent saves). A batch with a stored key
    /// changes no row, and neither does a batch after the agent execution's end. In both cases, the call returns the
    /// stored result.
    async fn save(&self, request: &SaveRequest) -> Result<Saved>;
}

/// The turn to begin.
#[derive(Debug, Clone)]
pub struct BeginTurn {
    /// The conversation, created if unknown.
    pub conversation_id: String,
    /// The tenant of the run.
    pub tenant_id: String,
    /// The message that starts the turn.
    pub message_id: String,
    /// The message's text; `None` if the row in `messages` has the text.
    pub content: Option<String>,
    /// The turn's agent execution.
    pub agent_execution_id: String,
    /// The agent from the present configuration, ignored for an agent execution with a pinned agent.
    pub agent: AgentDefinition,
    /// The decision about a turn without a pinned agent, if `agent` is only a name.
    pub on_unknown_agent: OnUnknownAgent,
    /// The run's epoch; 0 for a run without an epoch. `None`: the reconciler asks, not a run.
    pub epoch: Option<u32>,
    /// The tenant's budget of the day.
    pub tenant_budget: DayBudget,
}

/// The decision about a turn, or a sub-agent, with an agent unknown to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknownAgent {
    /// Refuses the turn without a change, because another worker may know the agent. The error is
    /// [`StoreError::NotFound`](crate::StoreError::NotFound).
    Refuse,
    /// Begins the turn anyway, because readers must see the turn's end.
    Begin,
}

/// The result of beginning a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStart {
    /// The turn, begun by this call or an earlier call.
    Begun(Box<BegunTurn>),
    /// Another turn is running, which the run may have to take over. No row has changed. The run asks again with the
    /// epoch, in an activity that Temporal schedules, because Temporal schedules activities only for the newest run.
    AskAgain {
        /// Larger than the epoch of the conversation's other runs.
        epoch: u32,
    },
}

/// A turn begun by this call or an earlier call.
#[derive(Debug, Clone, PartialEq)]
pub struct BegunTurn {
    /// Running, or the turn's final status.
    pub status: AgentExecutionStatus,
    /// The pinned agent; `None` for a call that ended without a sub-agent.
    pub agent: Option<PinnedAgent>,
    /// The run's epoch for the turn.
    pub epoch: u32,
    /// The conversation's log.
    pub log_id: LogId,
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Steps of lost turns ended by this call. The events of the turns' ends replace the steps' texts.
    pub sealed: Vec<SealedStep>,
    /// The time since the beginning.
    pub age: Duration,
    /// True if this call has begun the turn.
    pub is_new: bool,
}

impl BegunTurn {
    /// Makes a turn, or a sub-agent, that begins at the present time.
    pub(crate) fn now(agent: PinnedAgent, epoch: u32, log_id: LogId, last_sequence: u32) -> Self {
        Self {
            status: AgentExecutionStatus::Running,
            agent: Some(agent),
            epoch,
            log_id,
            last_sequence,
            sealed: Vec::new(),
            age: Duration::ZERO,
            is_new: true,
        }
    }
}

/// The agent of a turn or a sub-agent, fixed at the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct PinnedAgent {
    /// The definition. Later changes of the configuration have no effect.
    pub definition: AgentDefinition,
    /// The hash of the definition.
    pub hash: String,
}

/// The result of claiming a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepClaim {
    /// The call was made and paid earlier.
    Stored(LlmCompleteState),
    /// The worker must make the call.
    Call(ClaimedCall),
}

/// A model call claimed by a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedCall {
    /// The log of the step's events. The worker publishes deltas for the log's readers.
    pub log_id: LogId,
    /// The conversation's tenant.
    pub tenant_id: String,
    /// The generation of the call's deltas, larger than any earlier generation of the agent execution.
    pub generation: u32,
    /// The number of the step's calls, the claimed call included. Calls of workers of the release before are not
    /// counted.
    pub calls: u32,
    /// True if the store lacks a part of the saved earlier steps, because the database went back to an earlier point.
    /// The model call would miss the lost part.
    pub is_ahead: bool,
    /// True if the turn has a budget. The call must reserve a part ([`TurnStore::reserve_call`]).
    pub has_budget: bool,
    /// The provider's background response of an earlier call of the step, if known ([`TurnStore::note_response`]). The
    /// response may have ended or expired.
    pub background: Option<BackgroundResponse>,
    /// The step's position in the chain of the agent's models, after a failed call ([`TurnStore::note_failed_call`]).
    pub chain: Option<ChainPosition>,
}

/// The result of storing a step's reply.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once in a call of a model, and nearly always holds a reply"
)]
pub enum CompletedStep {
    /// The stored reply, from this call or an earlier call.
    Stored(LlmCompleteState),
    /// The store refused the reply. The conversation has these call ids of the reply already.
    CallIdsUsed(Vec<String>),
}

/// The result of a save.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The conversation's log.
    pub log_id: LogId,
    /// The stored result.
    pub result: SaveResult,
    /// Steps with texts that the batch's events replace for every reader.
    pub sealed: Vec<SealedStep>,
    /// The end of the agent execution, if this save has ended the agent execution.
    pub ended: Option<AgentEnd>,
}

/// The end and the usage of an agent execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnd {
    /// The final status.
    pub status: AgentExecutionStatus,
    /// The code of the error event, if any.
    pub error_code: Option<String>,
    /// The number of LLM calls with stored replies.
    pub calls: u32,
    /// Input tokens of the calls.
    pub input_tokens: u32,
    /// Output tokens of the calls.
    pub output_tokens: u32,
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

/// A caller's earlier read of a thread. The read part of a thread never changes, except at a new cut, or after the
/// database went back to an earlier point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBefore {
    /// The last event before the cut; 0 without a cut.
    pub cut: u32,
    /// The event of the last message.
    pub last_sequence: u32,
    /// The creation time of the last message.
    pub last_created_at: DateTime<Utc>,
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
