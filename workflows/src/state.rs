//! The state of a run of `agent-execution`: its input, the messages that wait, the turn that runs, and what it waits
//! for.
//!
//! Only data and its changes are here. Must not be here: what the engine calls (`agent_execution.rs`), what the turn
//! decides (`turn.rs`).

use everturn_proto::{
    ids,
    limits::MAX_MESSAGE_BYTES,
    turn::{Submit, TurnInput, TurnStatus},
    words::{AgentExecutionStatus, search_attribute},
};
use temporalio_common::search_attributes::SearchAttributeKey;
use temporalio_macros::workflow;
use temporalio_workflow::{WorkflowCancellationToken, WorkflowContext};

use crate::{
    inbox::{Inbox, Message},
    outside::Outside,
    step_calls::StepCalls,
};

pub(crate) const TURN_STATUS: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::TURN_STATUS);
/// The value of TurnStatus while a turn waits for a person.
const WAITING: &str = "waiting";

/// Workflow `agent-execution`: runs one turn, then continues as new for the next message that waits. A run that is younger
/// than a second goes on with that message itself.
#[workflow]
pub struct AgentExecution {
    pub(crate) input: Result<TurnInput, String>,
    pub(crate) inbox: Inbox,
    pub(crate) outside: Outside,
    pub(crate) step_calls: StepCalls,
    pub(crate) current: Option<CurrentTurn>,
    /// The turn that this run goes on with, when an earlier run has begun it.
    goes_on: Option<BegunTurn>,
    /// True when the turn that ran last was loaded by a worker that runs another turn in a young run.
    pub(crate) next_turn_here: bool,
    /// Messages that this chain of runs has named so far.
    pub(crate) anonymous_messages: u32,
}

/// A turn that an earlier run has begun.
struct BegunTurn {
    message_id: String,
    /// The step at which it goes on.
    step: u32,
}

impl BegunTurn {
    fn of(input: &TurnInput) -> Option<Self> {
        let message_id = match &input.delegation {
            Some(call) => Some(call.message_id.clone()),
            None => input.message.as_ref()?.message_id.clone(),
        };
        let step = input.from_step;
        let begun = message_id.map(|message_id| Self { message_id, step });
        begun.filter(|_| step > 0 || input.goes_on)
    }
}

/// The turn that runs now.
pub(crate) struct CurrentTurn {
    pub(crate) message_id: String,
    pub(crate) agent_execution_id: String,
    pub(crate) cancellation: WorkflowCancellationToken,
    pub(crate) step: u32,
    pub(crate) phase: Phase,
}

/// What the turn is doing, for query `status`.
pub(crate) enum Phase {
    Starting,
    Thinking,
    RunningTools(Vec<String>),
    Ending,
}

impl Phase {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Thinking => "thinking",
            Self::RunningTools(_) => "running_tools",
            Self::Ending => "ending",
        }
    }
}

impl AgentExecution {
    /// The state before anything has happened.
    pub(crate) fn begin(input: Result<TurnInput, String>) -> Self {
        Self {
            anonymous_messages: input.as_ref().map_or(0, |input| input.anonymous_messages),
            goes_on: input.as_ref().ok().and_then(BegunTurn::of),
            input,
            inbox: Inbox::default(),
            outside: Outside::default(),
            step_calls: StepCalls::default(),
            current: None,
            next_turn_here: false,
        }
    }

    /// The turn of this message, when this run goes on with it.
    fn begun(&self, message_id: &str) -> Option<&BegunTurn> {
        let goes_on = self.goes_on.as_ref();
        goes_on.filter(|begun| begun.message_id == message_id)
    }

    /// The step at which the turn of this message begins here.
    pub(crate) fn first_step_of(&self, message_id: &str) -> u32 {
        self.begun(message_id).map_or(0, |begun| begun.step)
    }

    /// Takes the message whose turn this run runs: the one that goes on, else the first that waits. Runs of earlier
    /// releases took one that interrupts first, also while a turn was to go on.
    pub(crate) fn take_first(&mut self) -> Option<Message> {
        let in_order = self.input.as_ref().is_ok_and(|input| input.inbox_in_order);
        let goes_on = self.goes_on.as_ref().filter(|_| in_order);
        let going_on = goes_on.and_then(|begun| self.inbox.take(&begun.message_id));
        going_on.or_else(|| self.inbox.take_next())
    }

    /// Takes the message whose turn follows in this run, and forgets the turn that has ended; `None` when no message
    /// waits.
    pub(crate) fn take_after_turn(&mut self) -> Option<Message> {
        let next = self.inbox.take_next()?;
        (self.goes_on, self.current) = (None, None);
        self.outside.end_step();
        self.step_calls = StepCalls::default();
        Some(next)
    }

    /// True when a message came before the turn of this one could go on, and interrupts it.
    pub(crate) fn is_interrupted(&self, message_id: &str) -> bool {
        self.begun(message_id).is_some() && self.inbox.has_interrupt()
    }

    /// Takes a message into the inbox, and names it if it has no name. Returns false when the message cannot be used or
    /// is known. A sub-agent takes none: it has its task.
    pub(crate) fn accept(&mut self, submit: Submit, first_execution_run_id: &str) -> bool {
        let message = self.message(submit, first_execution_run_id);
        message.is_some_and(|message| self.inbox.push(message))
    }

    /// Takes a message that waited in the run before this one, behind those that it stood behind there.
    pub(crate) fn accept_in_order(&mut self, submit: Submit, first_execution_run_id: &str) {
        if let Some(message) = self.message(submit, first_execution_run_id) {
            self.inbox.push_last(message);
        }
    }

    /// Makes a message of what was submitted; `None` when it cannot be used, or is the current one.
    fn message(&mut self, submit: Submit, first_execution_run_id: &str) -> Option<Message> {
        let input = self.input.as_ref();
        if input.is_ok_and(|input| input.delegation.is_some()) {
            return None;
        }
        let content = submit.content.as_deref().unwrap_or_default();
        // PostgreSQL cannot store a NUL.
        if content.len() > MAX_MESSAGE_BYTES || content.contains('\0') {
            return None;
        }
        let id = match submit.message_id.as_ref().filter(|id| !id.is_empty()) {
            Some(id) => id.clone(),
            None if content.trim().is_empty() => return None,
            None => {
                let number = self.anonymous_messages;
                // Somebody may have typed the largest number. An overflow would have the task fail for ever.
                self.anonymous_messages = number.wrapping_add(1);
                ids::anonymous_message_id(first_execution_run_id, number)
            }
        };
        let current = self.current.as_ref();
        let is_current = current.is_some_and(|current| current.message_id == id);
        let is_usable = !is_current && ids::is_valid(&id);
        is_usable.then(|| Message::submitted(id, submit))
    }

    /// Notes what the turn does now.
    pub(crate) fn enter(&mut self, step: u32, phase: Phase) {
        if let Some(current) = &mut self.current {
            current.step = step;
            current.phase = phase;
        }
    }

    /// Returns the answer to query `status`.
    pub(crate) fn turn_status(&self) -> TurnStatus {
        let input = self.input.as_ref();
        let mut status = TurnStatus {
            status: Phase::Starting.as_str().to_owned(),
            conversation_id: input
                .map_or_else(|_| String::new(), |input| input.conversation_id.clone()),
            queued: u32::try_from(self.inbox.len()).unwrap_or(u32::MAX),
            ..TurnStatus::default()
        };
        if let Some(current) = &self.current {
            current.phase.as_str().clone_into(&mut status.status);
            status.message_id.clone_from(&current.message_id);
            status
                .agent_execution_id
                .clone_from(&current.agent_execution_id);
            status.step = current.step;
            status.waiting_for = self.outside.waiting();
            status.approvals = self.outside.waiting_approvals();
            status.refused_answers = self.outside.refused_answers();
            if let Phase::RunningTools(tools) = &current.phase {
                status.running_tools.clone_from(tools);
            }
        }
        status
    }
}

/// Returns the id of the turn's own agent execution, or of the sub-agent's.
pub(crate) fn agent_execution_id(input: &TurnInput, message_id: &str) -> String {
    match &input.delegation {
        Some(call) => ids::sub_agent_execution_id(&input.conversation_id, &call.execution_id),
        None => ids::root_agent_execution_id(&input.conversation_id, message_id),
    }
}

/// Says in TurnStatus whether the turn waits for a person. Each change is an event of the history, so it is written only
/// when it changes.
pub(crate) fn show_waiting(ctx: &WorkflowContext<AgentExecution>) {
    let change = ctx.state_mut(|state| state.outside.status_change());
    if let Some(is_waiting) = change {
        let status = if is_waiting {
            WAITING
        } else {
            AgentExecutionStatus::Running.as_str()
        };
        ctx.upsert_search_attributes([TURN_STATUS.value_set(status.to_owned())]);
    }
}
