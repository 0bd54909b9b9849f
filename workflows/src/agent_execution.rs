//! The workflow as the engine sees it: input, signals, query, and how a run ends.

// The workflow macros generate undocumented markers beside each handler.
#![allow(missing_docs)]

use std::error::Error;

use everturn_proto::{
    Lenient, ids,
    limits::MAX_MESSAGE_BYTES,
    turn::{Cancel, ResolveApproval, Submit, ToolResultStored, TurnInput, TurnOutput, TurnStatus},
    words::{DEFAULT_TENANT, execution_status, failure, on_busy, refusal, search_attribute},
};
use temporalio_common::{error::ApplicationFailure, search_attributes::SearchAttributeKey};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowCancellationToken, WorkflowContext,
    WorkflowContextView, WorkflowResult, WorkflowTermination,
};

use crate::{
    calls::CallError,
    inbox::Inbox,
    outside::Outside,
    turn::{Outcome, Turn, TurnEnd},
};

const TURN_STATUS: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::TURN_STATUS);
/// TurnStatus while a turn waits for a person.
const WAITING: &str = "waiting";

/// Patch: a cancel reaches a message that waits. Runs from before it let that message, a steer too, go on.
const CANCEL_WAITING: &str = "cancel-waiting";

/// Workflow `agent-execution`: runs one turn, then continues as new for the next message that waits.
#[workflow]
pub struct AgentExecution {
    input: Result<TurnInput, String>,
    inbox: Inbox,
    pub(crate) outside: Outside,
    /// Tools that may begin now, of those of a step that may run at once.
    pub(crate) free_slots: u32,
    current: Option<Current>,
    /// Messages named by this chain of runs so far.
    anonymous_messages: u32,
}

/// The turn that runs now.
struct Current {
    message_id: String,
    agent_execution_id: String,
    cancellation: WorkflowCancellationToken,
    step: u32,
    phase: Phase,
}

/// What the turn is doing, for query `status`.
pub(crate) enum Phase {
    Starting,
    Thinking,
    RunningTools(Vec<String>),
    Ending,
}

#[workflow_methods]
impl AgentExecution {
    /// Takes the input as it is; what is wrong with it is said by `run`.
    #[init]
    pub fn new(ctx: &WorkflowContextView, input: Lenient<TurnInput>) -> Self {
        let mut state = Self {
            input: input.0,
            inbox: Inbox::default(),
            outside: Outside::default(),
            free_slots: 0,
            current: None,
            anonymous_messages: 0,
        };
        if let Ok(input) = &mut state.input {
            state.anonymous_messages = input.anonymous_messages;
            let inbox = std::mem::take(&mut input.inbox);
            for message in input.message.take().into_iter().chain(inbox) {
                state.accept(message, ctx.first_execution_run_id());
            }
        }
        state
    }

    /// One turn.
    #[run(name = "agent-execution")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<TurnOutput> {
        let input = ctx.state(|state| state.input.clone()).map_err(|error| {
            invalid(format!(
                "The input is not a turn: {error}. It looks like {EXAMPLE_INPUT}"
            ))
        })?;
        check_workflow_id(ctx.workflow_id(), &input).map_err(invalid)?;
        let first = match &input.delegation {
            Some(call) => Some(Submit {
                message_id: call.message_id.clone(),
                ..Submit::default()
            }),
            None => ctx.state_mut(|state| state.inbox.take_next()),
        };
        let Some(message) = first else {
            return Err(invalid(format!(
                "The turn has no message. Its input looks like {EXAMPLE_INPUT}"
            ))
            .into());
        };
        let message_id = message.message_id.clone();
        let turn = start_turn(ctx, &input, message.clone());
        let ended = match turn.load(&input).await {
            Ok(loaded) if loaded.status == execution_status::RUNNING => {
                set_search_attributes(ctx, &input, &loaded.agent);
                turn.run_in_time(&loaded).await
            }
            // A message that was delivered twice, after its turn had ended; a sub-agent that ended, or may not begin.
            Ok(loaded) => Ok(Outcome::Ended(TurnEnd {
                status: loaded.status,
                steps: 0,
                failure: None,
            })),
            Err(error) => Err(error),
        };
        finish(ctx, input, message, message_id, ended)
    }

    /// A message for this conversation. One that cannot be read is ignored: a signal has nobody to answer.
    #[signal]
    pub fn submit(&mut self, ctx: &mut SyncWorkflowContext<Self>, message: Lenient<Submit>) {
        let Ok(message) = message.0 else { return };
        let interrupts = message.on_busy == on_busy::INTERRUPT;
        let is_new = self.accept(message, ctx.info().first_execution_run_id());
        if let Some(current) = self.current.as_ref().filter(|_| is_new && interrupts) {
            current
                .cancellation
                .cancel_with_reason("interrupted by a newer message");
        }
    }

    /// Ends one message: the current one, or one that waits, whose turn then ends as it begins. A cancel for a message
    /// that has ended does nothing, so it may be sent twice or late.
    #[signal]
    pub fn cancel(&mut self, ctx: &mut SyncWorkflowContext<Self>, cancel: Lenient<Cancel>) {
        let Ok(Cancel { message_id, reason }) = cancel.0 else {
            return;
        };
        let reason = if reason.is_empty() {
            "cancelled by the user"
        } else {
            &reason
        };
        let is_current =
            |current: &&Current| message_id.is_empty() || message_id == current.message_id;
        if let Some(current) = self.current.as_ref().filter(is_current) {
            current.cancellation.cancel_with_reason(reason);
        } else if self.inbox.contains(&message_id) && ctx.patched(CANCEL_WAITING) {
            self.inbox.cancel(&message_id, reason);
        }
    }

    /// A person's answer to an approval. A gateway calls it: what does not fit is refused by the validator.
    #[update]
    pub fn resolve_approval(
        &mut self,
        _ctx: &mut SyncWorkflowContext<Self>,
        answer: Lenient<ResolveApproval>,
    ) {
        if let Ok(answer) = answer.0 {
            self.outside.resolve(answer);
        }
    }

    #[update_validator(resolve_approval)]
    fn check_approval(
        &self,
        _ctx: &WorkflowContextView,
        answer: &Lenient<ResolveApproval>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let answer = answer
            .0
            .as_ref()
            .map_err(|error| format!("{}: {error}", refusal::INVALID))?;
        self.outside
            .check(answer)
            .map_err(|refusal| refusal.to_string().into())
    }

    /// The same from the command line (`temporal workflow signal`). One that does not fit is ignored: a signal has
    /// nobody to answer.
    #[signal(name = "resolve_approval")]
    pub fn resolve_by_signal(
        &mut self,
        _ctx: &mut SyncWorkflowContext<Self>,
        answer: Lenient<ResolveApproval>,
    ) {
        if let Ok(answer) = answer.0 {
            self.outside.resolve(answer);
        }
    }

    /// The client has answered a client tool, and its result is stored.
    #[signal]
    pub fn tool_result(
        &mut self,
        _ctx: &mut SyncWorkflowContext<Self>,
        stored: Lenient<ToolResultStored>,
    ) {
        if let Ok(stored) = stored.0 {
            self.outside.result_stored(stored.execution_id);
        }
    }

    /// Where the turn stands.
    #[query]
    pub fn status(&self, _ctx: &WorkflowContextView) -> TurnStatus {
        let conversation_id = self
            .input
            .as_ref()
            .map(|input| input.conversation_id.clone())
            .unwrap_or_default();
        let queued = u32::try_from(self.inbox.len()).unwrap_or(u32::MAX);
        let Some(current) = &self.current else {
            return TurnStatus {
                status: "starting".to_owned(),
                conversation_id,
                queued,
                ..TurnStatus::default()
            };
        };
        let (status, running_tools) = match &current.phase {
            Phase::Starting => ("starting", Vec::new()),
            Phase::Thinking => ("thinking", Vec::new()),
            Phase::RunningTools(tools) => ("running_tools", tools.clone()),
            Phase::Ending => ("ending", Vec::new()),
        };
        TurnStatus {
            status: status.to_owned(),
            conversation_id,
            message_id: current.message_id.clone(),
            agent_execution_id: current.agent_execution_id.clone(),
            step: current.step,
            running_tools,
            queued,
            waiting_for: self.outside.waiting(),
        }
    }
}

impl AgentExecution {
    /// Takes a message into the inbox, named if it has no name. False when it is unusable or known. A sub-agent takes
    /// none: it has its task.
    fn accept(&mut self, mut message: Submit, first_execution_run_id: &str) -> bool {
        if self
            .input
            .as_ref()
            .is_ok_and(|input| input.delegation.is_some())
        {
            return false;
        }
        // NUL is what no store holds and no model reads.
        if message.content.len() > MAX_MESSAGE_BYTES || message.content.contains('\0') {
            return false;
        }
        if message.message_id.is_empty() {
            if message.content.trim().is_empty() {
                return false;
            }
            message.message_id =
                ids::anonymous_message_id(first_execution_run_id, self.anonymous_messages);
            self.anonymous_messages += 1;
        }
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|current| current.message_id == message.message_id);
        !is_current && ids::is_valid(&message.message_id) && self.inbox.push(message)
    }

    pub(crate) fn take_steers(&mut self) -> Vec<Submit> {
        self.inbox.take_steers()
    }

    pub(crate) fn enter(&mut self, step: u32, phase: Phase) {
        if let Some(current) = &mut self.current {
            current.step = step;
            current.phase = phase;
        }
    }
}

const EXAMPLE_INPUT: &str = r#"{"conversation_id":"demo","message":{"content":"Hello"}}"#;

fn invalid(message: String) -> ApplicationFailure {
    ApplicationFailure::builder(message)
        .type_name(failure::INVALID_INPUT.to_owned())
        .non_retryable(true)
        .build()
}

/// The engine guarantees one running workflow an id; that is one running turn a conversation only when the id
/// is the conversation's.
fn check_workflow_id(workflow_id: &str, input: &TurnInput) -> Result<(), String> {
    let conversation_id = &input.conversation_id;
    if !ids::is_valid(conversation_id) {
        return Err(format!(
            "`conversation_id` must be 1 to 100 letters, digits or -_.: characters. The input looks like {EXAMPLE_INPUT}"
        ));
    }
    let expected = match &input.delegation {
        Some(call) => ids::sub_agent_workflow_id(conversation_id, &call.execution_id),
        None => ids::workflow_id(conversation_id),
    };
    if workflow_id == expected {
        return Ok(());
    }
    Err(format!(
        "The workflow id of this conversation must be `{expected}`, not `{workflow_id}`."
    ))
}

fn start_turn<'a>(
    ctx: &'a WorkflowContext<AgentExecution>,
    input: &TurnInput,
    message: Submit,
) -> Turn<'a> {
    // A child of the run's own token: `temporal workflow cancel` and signal `cancel` end the turn alike.
    let cancellation = ctx.cancellation_token().child_token();
    if !message.cancel_reason.is_empty() {
        cancellation.cancel_with_reason(&message.cancel_reason);
    }
    ctx.state_mut(|state| {
        state.current = Some(Current {
            message_id: message.message_id.clone(),
            agent_execution_id: agent_execution_id(input, &message),
            cancellation: cancellation.clone(),
            step: input.from_step,
            phase: Phase::Starting,
        });
    });
    Turn::new(ctx, input, message, cancellation)
}

/// The turn's own agent execution, or the sub-agent's.
pub(crate) fn agent_execution_id(input: &TurnInput, message: &Submit) -> String {
    match &input.delegation {
        Some(call) => ids::sub_agent_execution_id(&input.conversation_id, &call.execution_id),
        None => ids::root_execution_id(&input.conversation_id, &message.message_id),
    }
}

/// A turn started by the gateway has them from the start; one started by hand, and a sub-agent, get them here (A7).
fn set_search_attributes(ctx: &WorkflowContext<AgentExecution>, input: &TurnInput, agent: &str) {
    const CONVERSATION_ID: SearchAttributeKey<String> =
        SearchAttributeKey::keyword(search_attribute::CONVERSATION_ID);
    const AGENT_NAME: SearchAttributeKey<String> =
        SearchAttributeKey::keyword(search_attribute::AGENT_NAME);
    const TENANT_ID: SearchAttributeKey<String> =
        SearchAttributeKey::keyword(search_attribute::TENANT_ID);
    if ctx.search_attributes().contains_key(&CONVERSATION_ID) {
        return;
    }
    let tenant = if input.tenant_id.is_empty() {
        DEFAULT_TENANT
    } else {
        &input.tenant_id
    };
    ctx.upsert_search_attributes([
        CONVERSATION_ID.value_set(input.conversation_id.clone()),
        AGENT_NAME.value_set(agent.to_owned()),
        TENANT_ID.value_set(tenant.to_owned()),
        TURN_STATUS.value_set(execution_status::RUNNING.to_owned()),
    ]);
}

/// Says in TurnStatus whether the turn waits for a person. Each change is an event of the history: only when it changes.
pub(crate) fn show_waiting(ctx: &WorkflowContext<AgentExecution>) {
    if let Some(is_waiting) = ctx.state_mut(|state| state.outside.status_change()) {
        let status = if is_waiting {
            WAITING
        } else {
            execution_status::RUNNING
        };
        ctx.upsert_search_attributes([TURN_STATUS.value_set(status.to_owned())]);
    }
}

/// Ends the run: with the next message's turn, a new run for the same turn, or the turn's result.
fn finish(
    ctx: &WorkflowContext<AgentExecution>,
    input: TurnInput,
    message: Submit,
    message_id: String,
    ended: Result<Outcome, CallError>,
) -> WorkflowResult<TurnOutput> {
    let continue_at = match &ended {
        Ok(Outcome::ContinueAt(step)) => Some(*step),
        _ => None,
    };
    let is_sub_agent = input.delegation.is_some();
    let has_more = ctx.state(|state| !state.inbox.is_empty());
    if continue_at.is_some() || has_more {
        let (inbox, anonymous_messages) =
            ctx.state_mut(|state| (state.inbox.drain(), state.anonymous_messages));
        let next = TurnInput {
            message: continue_at
                .map(|_| Submit {
                    content: String::new(),
                    ..message
                })
                .filter(|_| !is_sub_agent),
            inbox,
            anonymous_messages,
            from_step: continue_at.unwrap_or(0),
            ..input
        };
        ctx.continue_as_new(Lenient::from(next), ContinueAsNewOptions::default())?;
    }
    match ended {
        Ok(Outcome::Ended(TurnEnd {
            status,
            steps,
            failure: None,
        })) => {
            if status == execution_status::CANCELLED && ctx.cancellation_token().is_cancelled() {
                return Err(WorkflowTermination::cancelled());
            }
            Ok(TurnOutput {
                message_id,
                status,
                steps,
            })
        }
        Ok(Outcome::Ended(TurnEnd {
            failure: Some((code, message)),
            ..
        }))
        | Err(CallError::Failed { code, message }) => Err(ApplicationFailure::builder(message)
            .type_name(code)
            .non_retryable(true)
            .build()
            .into()),
        Err(CallError::Cancelled) | Ok(Outcome::ContinueAt(_)) => {
            Err(WorkflowTermination::cancelled())
        }
    }
}
