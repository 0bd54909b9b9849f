//! What a worker needs to run turns.

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
    Access, BackgroundResponse, ChainPlace, DayBudget, Estimate, FailedCall, NotedFailure,
    PageLimit, Reservation, Result, WorkerId,
    tools::{DefinedTool, StepKey, ToolClaim, ToolEnd, ToolKey, ToolRecord, ToolResult},
};

/// What a worker needs to run turns. The claims keep a call of the model from being paid twice (invariant 5, paid once)
/// and a tool from being run twice (invariant 6, done once).
#[async_trait]
pub trait TurnStore: Send + Sync {
    /// Begins a turn for a run of the conversation's workflow.
    ///
    /// Takes a message into its turn: creates the conversation when it is unknown, stores the agent by its hash,
    /// inserts the agent execution, marks the message taken and appends `user_message`, in one transaction. When it is
    /// repeated it returns what is stored. It gives [`StoreError::NotFound`] when the message has neither a row nor
    /// content, or the conversation was deleted less than a day ago, and [`StoreError::ForeignConversation`] when the
    /// conversation is, or would be, another tenant's than the run was told.
    ///
    /// A turn that says it runs while another begins has lost its workflow: the engine runs one workflow a
    /// conversation, which goes on to the next message only when the turn has ended here. The lost turn is ended first,
    /// with `turn_lost`. But the run that begins may itself be the one that the engine has ended, and its request late.
    /// So where a turn runs, the run gets an epoch and asks again with it (invariant 11, one run).
    ///
    /// `begin.on_unknown_agent` says what becomes of a turn whose agent nobody here knows.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    /// [`StoreError::ForeignConversation`]: crate::StoreError::ForeignConversation
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart>;

    /// Begins the sub-agent of a `delegate` call in one transaction: writes its row, its task and `sub_agent_start`,
    /// and the call counts as running from now on. `agents` are those configured now, by name. When it is repeated it
    /// returns what is stored.
    ///
    /// A call that may not have a sub-agent (limits, wrong arguments) is ended with an error for the model. A call that
    /// has ended gets none. The status that is returned is then not running. The same becomes of a call whose agent is
    /// not in `agents`, unless `on_unknown` says otherwise.
    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn>;

    /// Returns the name of the conversation's agent; `None` when there is no such conversation.
    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>>;

    /// Returns whose the conversation is; `None` when there is no such conversation.
    async fn owner_of(&self, conversation_id: &str) -> Result<Option<ConversationOwner>>;

    /// Returns the texts of those of these messages that are stored, by their ids.
    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>>;

    /// Stores the records of the hooks that run after a turn, as pending, unless they are stored. `step` is that of
    /// `ids::AFTER_TURN_STEP`. No event belongs to them. Returns false, and stores nothing, when too many hooks of
    /// other turns of the conversation have not ended (`limits::MAX_HOOKS_AFTER_TURNS`).
    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool>;

    /// Returns the definition of an agent by its hash; `None` when none is stored.
    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>>;

    /// Returns what the model is sent of a thread, oldest first, up to `limit`: the summary of what was compacted, the
    /// messages that were kept then, and those after it. Messages that wait are not among them. It reads no more than it
    /// returns. With `read`, what the caller has read before, it returns only what is new, if that goes on from there.
    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext>;

    /// Returns those of these tools that need no more approvals in the conversation, with the definitions that a person has
    /// approved.
    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>>;

    /// Returns the definitions with which the conversation has used these tools last. A tool that it has not used, or
    /// whose definition no call was bound to, is left out.
    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>>;

    /// Claims the LLM call of a step: gives the stored `llm_complete`, or a new generation (invariant 5, paid once).
    /// `worker` is the process that makes the call; `None` when it has no lease.
    async fn claim_step(&self, step: &StepKey, worker: Option<&WorkerId>) -> Result<StepClaim>;

    /// Gives back a claim whose call was not made: the call does not count. It changes nothing when the step was claimed
    /// again.
    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<()>;

    /// Reserves a part of the turn's budget for a call that was claimed ([`ClaimedCall::has_budget`]), before it is made.
    /// The same call may ask again. `other_model` is the model that is called (`<provider>/<model>`), when that is not the
    /// agent's own.
    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation>;

    /// Gives back what was reserved for a call that the provider refused and takes nothing for.
    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<()>;

    /// Stores the response that runs at the provider for a call that was claimed, in place of an earlier one: the next
    /// claim of the step answers it. Returns false, and changes nothing, when the call is useless because another one
    /// was claimed, the agent execution has ended, or a newer run has taken over.
    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool>;

    /// Notes that a call of a model of a chain has failed: the next claim of the step answers where the step is now. When it
    /// goes on to another model, the event that says so is appended in the same transaction, once, and a response that runs
    /// for the call is forgotten.
    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure>;

    /// True while the agent execution runs and no newer generation than this one was claimed: a model call whose claim
    /// is lost is paid for and of no use.
    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool>;

    /// Stores `llm_complete` and returns what is stored: the first one wins. A call's id is unique in its conversation, so
    /// a reply with one that is used there is not stored.
    async fn complete_step(&self, step: &StepKey, state: LlmCompleteState)
    -> Result<CompletedStep>;

    /// Stores the text so far of a call that was stopped (`llm_partial`; the newest generation wins). Only an end that
    /// cuts the turn short reads it; [`TurnStore::claim_step`] does not see it.
    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()>;

    /// Claims a tool execution before it runs, and writes the checkpoint `tool_start` when it may run (invariant 6,
    /// done once). `claimant` names the attempt that asks ([`WorkerId::claimant`], or the run of a remote tool); it is not
    /// empty and no other attempt ever uses it. When the answer of a claim
    /// was lost (a connection broke at the commit), the same claimant asks again and may run the tool.
    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim>;

    /// Gives back the claim of a tool that this claimant did not run: the tool is pending again, as if it had not been
    /// claimed. It changes nothing when somebody else holds the claim, or the tool has ended.
    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<()>;

    /// Records how a tool execution ended, and returns the record as it is then: the first end wins.
    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord>;

    /// Saves one batch in one transaction (invariants 2, one order, and 3, idempotent saves). A batch whose key is
    /// stored changes nothing, nor does any batch after the agent execution's end; both return what is stored.
    async fn save(&self, request: &SaveRequest) -> Result<Saved>;
}

/// Whose a conversation is, and how they name it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ConversationOwner {
    /// Its tenant, and its owner when it has one.
    #[sqlx(flatten)]
    pub access: Access,
    /// Its name in its tenant.
    pub conversation_name: String,
}

/// The turn to begin.
#[derive(Debug, Clone)]
pub struct BeginTurn {
    /// The conversation; created when unknown.
    pub conversation_id: String,
    /// Its tenant, as the run was told.
    pub tenant_id: String,
    /// The message that starts the turn.
    pub message_id: String,
    /// Its text; `None` when the row in `messages` has it.
    pub content: Option<String>,
    /// The turn's agent execution.
    pub agent_execution_id: String,
    /// The agent as configured now; ignored when the agent execution is already pinned to one.
    pub agent: AgentDefinition,
    /// What becomes of a turn that is not pinned yet, when `agent` is only a name.
    pub on_unknown_agent: OnUnknownAgent,
    /// The epoch of the run that asks: 0 when it has none yet, else the one that it was given. `None`: a run of an
    /// earlier release, which begins at once and is never refused.
    pub epoch: Option<u32>,
    /// What the conversation's tenant may take today.
    pub tenant_budget: DayBudget,
}

/// What becomes of a turn, or of a sub-agent, whose agent the worker does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknownAgent {
    /// It does not begin, and nothing is changed: another worker may know the agent. The error is
    /// [`StoreError::NotFound`](crate::StoreError::NotFound).
    Refuse,
    /// It begins all the same, so that its end can be told.
    Begin,
}

/// Answer to a run that begins a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStart {
    /// The turn, begun now or before.
    Begun(Box<BegunTurn>),
    /// A turn runs already that this run may have to take over, and nothing was changed. The run asks again with this
    /// epoch, in an activity that the engine schedules: it does so for the newest run alone.
    AskAgain {
        /// Larger than that of any other run of the conversation.
        epoch: u32,
    },
}

/// A turn that was begun, now or before.
#[derive(Debug, Clone, PartialEq)]
pub struct BegunTurn {
    /// Running, or how the turn ended.
    pub status: AgentExecutionStatus,
    /// The agent it is pinned to; `None` for a call that ended without a sub-agent.
    pub agent: Option<PinnedAgent>,
    /// The epoch under which the run has it; `None` for a run that named none.
    pub epoch: Option<u32>,
    /// The conversation's log.
    pub log_id: LogId,
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Steps of lost turns that were ended now, whose texts the events of these ends replace.
    pub sealed: Vec<SealedStep>,
    /// How long ago it began.
    pub age: Duration,
    /// True when this call has begun it.
    pub is_new: bool,
}

impl BegunTurn {
    /// A turn, or a sub-agent, that begins now.
    pub(crate) fn now(
        agent: PinnedAgent,
        epoch: Option<u32>,
        log_id: LogId,
        last_sequence: u32,
    ) -> Self {
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

/// The agent of a turn or a sub-agent, as it was when that began.
#[derive(Debug, Clone, PartialEq)]
pub struct PinnedAgent {
    /// What it is, whatever the configuration says by now.
    pub definition: AgentDefinition,
    /// Hash of the definition.
    pub hash: String,
}

/// Answer to a claim of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepClaim {
    /// The call was already made and paid.
    Stored(LlmCompleteState),
    /// Make the call.
    Call(ClaimedCall),
}

/// A call of a model that a worker has claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedCall {
    /// The log that the step will be saved in: the deltas are published for its readers.
    pub log_id: LogId,
    /// The conversation's tenant.
    pub tenant_id: String,
    /// The generation of its deltas: larger than any that was given for this agent execution before.
    pub generation: u32,
    /// Number of calls of this step, with this one. Calls of workers of the release before are not counted.
    pub calls: u32,
    /// True when the store lacks a part of the steps before, which were saved: it went back to an earlier point. The
    /// model would be called without that part.
    pub is_ahead: bool,
    /// True when the turn has a budget, of which the call must reserve a part ([`TurnStore::reserve_call`]).
    pub has_budget: bool,
    /// The response that runs at the provider for an earlier call of this step, when one is known
    /// ([`TurnStore::note_response`]). It may have ended, or be gone.
    pub background: Option<BackgroundResponse>,
    /// Where the step is in the chain of its agent's models, when a call of it has failed
    /// ([`TurnStore::note_failed_call`]).
    pub chain: Option<ChainPlace>,
}

/// Answer to the reply of a step.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once in a call of a model, and nearly always holds a reply"
)]
pub enum CompletedStep {
    /// This is stored, now or before.
    Stored(LlmCompleteState),
    /// Nothing is stored. These are the reply's call ids that the conversation has already.
    CallIdsUsed(Vec<String>),
}

/// What a save left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The conversation's log.
    pub log_id: LogId,
    /// What is stored.
    pub result: SaveResult,
    /// Steps whose texts this batch's events replace on every reader.
    pub sealed: Vec<SealedStep>,
    /// How the agent execution has ended, when this save has ended it.
    pub ended: Option<AgentEnd>,
}

/// How an agent execution has ended, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnd {
    /// The status, which is final.
    pub status: AgentExecutionStatus,
    /// The code of the error event, when there is one.
    pub error_code: Option<String>,
    /// Number of LLM calls whose replies were stored.
    pub calls: u32,
    /// Tokens that these have read.
    pub input_tokens: u32,
    /// Tokens that these have written.
    pub output_tokens: u32,
}

/// The context of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelContext {
    /// The messages, oldest first.
    pub messages: Vec<ContextMessage>,
    /// True when there are newer ones, which the limit did not let in.
    pub has_more: bool,
    /// True when the messages come after what was read before. Else they are the whole context.
    pub goes_on: bool,
}

/// What a caller has read of a thread before. It never changes, unless the thread is cut anew, or the database goes back to
/// an earlier point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBefore {
    /// The last event before its cut; 0 without one.
    pub cut: u32,
    /// The event of its last message.
    pub last_sequence: u32,
    /// When its last message was created.
    pub last_created_at: DateTime<Utc>,
}

impl ReadBefore {
    /// What was read; `None` when that is nothing, or ends before the newest cut.
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

    /// True when the messages, read with this, come after it.
    pub(crate) fn goes_on_with(self, messages: &[ContextMessage]) -> bool {
        let first = messages.first();
        first.is_none_or(|it| it.is_after_cut() && it.sequence_number > self.last_sequence)
    }
}

/// A message as the model's context sees it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct ContextMessage {
    /// Who said it.
    #[sqlx(try_from = "String")]
    pub role: MessageRole,
    /// The text.
    pub content: String,
    /// Calls of an assistant message, in call order.
    #[sqlx(json)]
    pub tool_calls: Vec<ToolCall>,
    /// Results of those calls that ended.
    #[sqlx(json)]
    pub tool_results: Vec<ToolResult>,
    /// The blobs that a user's message names.
    #[sqlx(json)]
    pub attachments: Vec<Attachment>,
    /// The event with which it entered the timeline; for a summary, the last event that it stands for.
    #[sqlx(try_from = "i64")]
    pub sequence_number: u32,
    /// Its id; empty for a summary.
    pub id: String,
    /// The agent execution that has taken it, or written it; empty for a summary.
    pub agent_execution_id: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// True for a message before the newest cut, which is sent on all the same.
    pub is_kept: bool,
}

impl ContextMessage {
    /// A text that somebody said.
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

    /// True for a message after the newest cut.
    fn is_after_cut(&self) -> bool {
        self.role != MessageRole::Summary && !self.is_kept
    }

    /// True for an answer of the model that was cut and that goes on in the next message, or is to go on now.
    pub fn goes_on_in(&self, next: Option<&Self>) -> bool {
        self.role == MessageRole::Assistant
            && self.tool_calls.is_empty()
            && next.is_none_or(|next| next.role == MessageRole::Assistant)
    }
}
