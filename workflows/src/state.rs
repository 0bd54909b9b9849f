//! The state of a run of `agent-execution`: its input, its inbox, the running turn, and the approvals and
//! results for which the turn waits.
//!
//! Only data and its changes are here. Must not be here: the engine's handlers (`agent_execution.rs`), the decisions of
//! a turn (`turn.rs`).

use everturn_proto::{
    ids,
    limits::MAX_MESSAGE_BYTES,
    turn::{Submit, TurnInput, TurnStatus},
    words::{AgentExecutionStatus, PayloadRefusal, search_attribute},
};
use temporalio_common::search_attributes::SearchAttributeKey;
use temporalio_macros::workflow;
use temporalio_workflow::{WorkflowCancellationToken, WorkflowContext};

use crate::{
    inbox::{Inbox, Message},
    outside::Outside,
    step_calls::StepCalls,
};

/// The reason of a cancel that came through the engine without a reason. The engine does not know who has sent the cancel.
pub(crate) const BY_ENGINE: &str = "cancelled by an operator through the engine";

pub(crate) const TURN_STATUS: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::TURN_STATUS);
/// The value of TurnStatus while a turn waits for a person.
const WAITING: &str = "waiting";

/// Workflow `agent-execution`: runs one turn, then continues as new for the next waiting message. A run younger than a
/// second runs the next turn itself.
#[workflow]
pub struct AgentExecution {
    pub(crate) input: Result<TurnInput, String>,
    /// The message of the run's first turn, until the run takes it.
    first: Option<Message>,
    /// Why the run must not take its input.
    pub(crate) refused_input: Option<PayloadRefusal>,
    /// Number of the run's signals up to now.
    pub(crate) signals: u32,
    pub(crate) inbox: Inbox,
    pub(crate) outside: Outside,
    pub(crate) step_calls: StepCalls,
    pub(crate) current: Option<CurrentTurn>,
    /// The turn of an earlier run, if this run goes on with it.
    goes_on: Option<BegunTurn>,
    /// Number of messages without an id that the chain of runs has named so far.
    pub(crate) anonymous_messages: u32,
}

/// A turn that an earlier run has begun.
struct BegunTurn {
    message_id: String,
    /// The step from which the turn goes on.
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

/// The running turn.
pub(crate) struct CurrentTurn {
    pub(crate) message_id: String,
    pub(crate) agent_execution_id: String,
    pub(crate) cancellation: WorkflowCancellationToken,
    pub(crate) step: u32,
    pub(crate) phase: Phase,
}

/// The current work of the turn, for query `status`.
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
    /// Returns the state at the start of a run.
    pub(crate) fn begin(input: Result<TurnInput, String>) -> Self {
        // A sub-agent takes no messages.
        let may_have_waiting =
            |input: &TurnInput| input.delegation.is_none() && (input.has_waiting || input.goes_on);
        Self {
            anonymous_messages: input.as_ref().map_or(0, |input| input.anonymous_messages),
            goes_on: input.as_ref().ok().and_then(BegunTurn::of),
            inbox: Inbox::new(input.as_ref().is_ok_and(may_have_waiting)),
            input,
            first: None,
            refused_input: None,
            signals: 0,
            outside: Outside::default(),
            step_calls: StepCalls::default(),
            current: None,
        }
    }

    /// Returns the begun turn of a message, when this run goes on with that turn.
    fn begun(&self, message_id: &str) -> Option<&BegunTurn> {
        let goes_on = self.goes_on.as_ref();
        goes_on.filter(|begun| begun.message_id == message_id)
    }

    /// Returns the first step of a message's turn in this run.
    pub(crate) fn first_step_of(&self, message_id: &str) -> u32 {
        self.begun(message_id).map_or(0, |begun| begun.step)
    }

    /// Takes the message of this run's first turn.
    pub(crate) fn take_first(&mut self) -> Option<Message> {
        self.first.take()
    }

    /// Takes the message of the next turn, which the last look found.
    pub(crate) fn take_next(&mut self) -> Option<Message> {
        self.inbox.take_next().map(Message::stored)
    }

    /// Forgets the ended turn, because this run goes on with another turn.
    pub(crate) fn end_turn(&mut self) {
        (self.goes_on, self.current) = (None, None);
        self.outside.end_step();
        self.step_calls = StepCalls::default();
    }

    /// Takes the signal `submit`, or the message of a plain start. The first message begins the run's first turn. Every
    /// further message rings, and a message with a text is stored by the next look. An unusable message is ignored, and
    /// so is the running turn's own message. A sub-agent takes no messages, because its task is its only message.
    pub(crate) fn accept(&mut self, submit: Submit, first_execution_run_id: &str) {
        let input = self.input.as_ref();
        if input.is_ok_and(|input| input.delegation.is_some()) {
            return;
        }
        let content = submit.content.filter(|content| !content.trim().is_empty());
        let size = content.as_ref().map_or(0, String::len);
        // PostgreSQL cannot store a NUL.
        if size > MAX_MESSAGE_BYTES || content.as_ref().is_some_and(|text| text.contains('\0')) {
            return;
        }
        let id = match submit.message_id.filter(|id| !id.is_empty()) {
            Some(id) => id,
            None if content.is_none() => return,
            None => {
                let number = self.anonymous_messages;
                // A hand-typed number may be the largest. An overflow would make the workflow task fail forever.
                self.anonymous_messages = number.wrapping_add(1);
                ids::anonymous_message_id(first_execution_run_id, number)
            }
        };
        let current = self.current.as_ref();
        let is_current = current.is_some_and(|current| current.message_id == id);
        let is_first = self.first.as_ref().is_some_and(|first| first.id == id);
        if is_current || is_first || !ids::is_valid(&id) {
            return;
        }
        if current.is_none() && self.first.is_none() {
            self.first = Some(Message { id, content });
        } else if content.is_some() {
            self.inbox.submit(Submit {
                message_id: Some(id),
                content,
                on_busy: submit.on_busy.filter(|word| !word.is_empty()),
            });
        } else {
            self.inbox.ring();
        }
    }

    /// Notes the turn's current step and phase.
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

/// Returns the id of the turn's agent execution, or of the sub-agent's.
pub(crate) fn agent_execution_id(input: &TurnInput, message_id: &str) -> String {
    match &input.delegation {
        Some(call) => ids::sub_agent_execution_id(&input.conversation_id, &call.execution_id),
        None => ids::root_agent_execution_id(&input.conversation_id, message_id),
    }
}

/// Writes to TurnStatus whether the turn waits for a person. Every write is an event of the history, so only a change
/// is written.
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
