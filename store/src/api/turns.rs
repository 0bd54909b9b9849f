//! The beginning of turns and sub-agents, and of the work after turns.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use everturn_proto::{
    LogId, SealedStep,
    turn::{AgentDefinition, Inbox, ReadInboxRequest, ToolCall},
    words::AgentExecutionStatus,
};

use super::{DayBudget, Result, steps::StepKey, tools::ToolKey};

/// Begins turns, sub-agents, and the work after turns, and reads the inbox of a run. For workers: the activities
/// `load_turn_activity`, `read_inbox_activity` and `begin_after_turn_activity`.
#[async_trait]
pub trait Turns: Send + Sync {
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
    /// The turn of a message that was cancelled while it waited begins and ends in this call, and the message stays out
    /// of the context of later turns.
    ///
    /// `begin.on_unknown_agent` decides about a turn with an agent unknown to the worker.
    ///
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    /// [`StoreError::ForeignConversation`]: crate::StoreError::ForeignConversation
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart>;

    /// Stores the messages and cancels that came in signals, and reads the conversation's waiting messages. A repeated
    /// call stores nothing twice. An unknown conversation has an empty inbox.
    async fn read_inbox(&self, request: &ReadInboxRequest) -> Result<Inbox>;

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

    /// Stores the records of a turn's hooks that run after the turn, as pending, unless stored already. The number of
    /// `step` is `ids::AFTER_TURN_STEP`. The hooks have no events. Returns false, and stores no record, if too many
    /// hooks of the conversation's other turns have not ended (`limits::MAX_HOOKS_AFTER_TURNS`). In both cases, the hooks
    /// wait for their workflow no longer ([`Reconciliation::due_hooks`](crate::Reconciliation::due_hooks)).
    async fn begin_after_turn(&self, step: &StepKey, calls: &[ToolCall]) -> Result<bool>;
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
    /// The reason of a noted cancel of this running turn.
    pub cancel_reason: Option<String>,
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
            cancel_reason: None,
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
