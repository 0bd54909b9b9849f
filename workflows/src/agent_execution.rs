//! The workflow's handlers for the engine: input, signals, update, query, and the end of a run.
//!
//! Must not be here: the decisions of a turn (`turn.rs`).

// The workflow macros generate undocumented markers beside each handler.
#![allow(missing_docs)]

use std::{error::Error, time::Duration};

use everturn_proto::{
    ConversationName, Lenient, ids,
    turn::{Cancel, ResolveApproval, Submit, ToolResultStored, TurnInput, TurnOutput, TurnStatus},
    words::{AgentExecutionStatus, ApprovalRefusal, FailureCode, search_attribute},
};
use temporalio_common::{error::ApplicationFailure, search_attributes::SearchAttributeKey};
use temporalio_macros::workflow_methods;
use temporalio_workflow::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView,
    WorkflowResult, WorkflowTermination,
};

use crate::{
    AgentExecution, after_turn,
    calls::{self, CallError},
    inbox::Message,
    outside::{LOST_ANSWER, Refusal, Through},
    refused::{fail_task, refusal_of_input, take_input},
    state::{BY_ENGINE, CurrentTurn, Phase, TURN_STATUS, agent_execution_id, show_waiting},
    turn::{Outcome, Turn, TurnEnd},
};

/// The age below which a run may run another turn. After an older run the engine starts the next run without delay. The
/// value is the default of the engine's `history.workflowIdReuseMinimalInterval`.
const YOUNG: Duration = Duration::from_secs(1);

/// The most looks at the end of a run. A further message then begins the next run, which looks again.
const MAX_LAST_LOOKS: u32 = 10;

#[workflow_methods]
impl AgentExecution {
    /// Takes the input unchecked. `run` reports an invalid input.
    #[init]
    pub fn new(ctx: &WorkflowContextView, input: Lenient<TurnInput>) -> Self {
        let refused_input = refusal_of_input(&input);
        let mut state = Self::begin(input.0);
        state.refused_input = refused_input;
        let message = state.input.as_mut().ok();
        if let Some(message) = message.and_then(|input| input.message.take()) {
            state.accept(message, ctx.first_execution_run_id());
        }
        state
    }

    /// Runs one turn. A young run also runs the turns of waiting messages.
    #[run(name = "agent-execution")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<TurnOutput> {
        let refused = ctx.state(|state| state.refused_input.clone());
        take_input(ctx, refused).await.map_err(invalid)?;
        let mut input = ctx.state(|state| state.input.clone()).map_err(|error| {
            invalid(format!(
                "The input is not a turn: {error}. It looks like {EXAMPLE_INPUT}"
            ))
        })?;
        check_workflow_id(ctx.workflow_id(), &input).map_err(invalid)?;
        let first = match &input.delegation {
            Some(call) => Some(Message::stored(call.message_id.clone())),
            None => ctx.state_mut(AgentExecution::take_first),
        };
        let Some(mut message) = first else {
            return Err(invalid(format!(
                "The turn has no message. Its input looks like {EXAMPLE_INPUT}"
            ))
            .into());
        };
        loop {
            let ended = run_turn(ctx, &input, message.clone()).await;
            answer_callers(ctx).await;
            match next_message(ctx, &input, &message.id, &ended).await {
                Some(next) if may_stay(ctx, &input, &ended) => message = next,
                next => return finish(ctx, input, message, ended, next),
            }
            ctx.state_mut(AgentExecution::end_turn);
            show_waiting(ctx);
            input = TurnInput {
                message: None,
                from_step: 0,
                goes_on: false,
                among_tools: false,
                has_waiting: false,
                ..input
            };
        }
    }

    /// Rings: a message waits in the store, or came with this signal. An unreadable message is ignored, because a signal
    /// has no answer.
    #[signal]
    pub fn submit(&mut self, ctx: &mut SyncWorkflowContext<Self>, message: Lenient<Submit>) {
        if let Some(message) = self.taken(ctx, message) {
            self.accept(message, ctx.info().first_execution_run_id());
        }
    }

    /// Ends the turn of one message: the current message, or a waiting message, whose turn then ends at its start. A
    /// cancel for an ended message does nothing, so a client may send it twice or late. A gateway stores a cancel before
    /// it signals.
    #[signal]
    pub fn cancel(&mut self, ctx: &mut SyncWorkflowContext<Self>, cancel: Lenient<Cancel>) {
        let Some(Cancel { message_id, reason }) = self.taken(ctx, cancel) else {
            return;
        };
        let reason = match reason.as_str() {
            "" => BY_ENGINE.to_owned(),
            _ => reason,
        };
        // A hand-typed empty id means no id.
        let message_id = message_id.filter(|id| !id.is_empty());
        let is_current = |current: &&CurrentTurn| {
            let id = message_id.as_ref();
            id.is_none_or(|id| *id == current.message_id)
        };
        if let Some(current) = self.current.as_ref().filter(is_current) {
            current.cancellation.cancel_with_reason(&reason);
        } else if message_id.as_deref().is_some_and(ids::is_valid) {
            self.inbox.cancel(Cancel { message_id, reason });
        }
    }

    /// Takes a person's answer to an approval. Gateways call the update; the validator refuses unfit answers. The
    /// caller gets its response after the save of the answer, so that the next run does not ask again.
    #[update]
    pub async fn resolve_approval(
        ctx: &mut WorkflowContext<Self>,
        answer: Lenient<ResolveApproval>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        // The validator has refused unreadable answers. The history may still have an answer that this worker cannot open.
        if let Some(refusal) = ctx.state(|state| state.refusal_of(&answer)) {
            match fail_task(ctx, refusal.text()).await {}
        }
        let Ok(answer) = answer.0 else { return Ok(()) };
        let id = answer.execution_id.clone();
        let taken = ctx.state_mut(|state| state.outside.resolve(answer, Through::Update));
        // The store may refuse this answer, or an earlier answer to the call. The call then keeps waiting.
        let number = taken.as_ref().ok().copied();
        let comes_second = taken == Err(Refusal::BeingStored);
        let is_open_again =
            |state: &Self| state.outside.needs_approval(&id) && state.outside.answer(&id).is_none();
        let is_settled = |state: &Self| {
            state.outside.is_settled(&id)
                || number.is_some_and(|number| state.outside.refusal_of(number).is_some())
                || (comes_second && is_open_again(state))
        };
        // The wait fails when the run is cancelled. The end of the turn may then observe the call instead of the answer, so
        // the sender learns from the store whether the answer counts.
        let is_cancelled = ctx.wait_condition(is_settled).await.is_err();
        if is_cancelled && !ctx.state(is_settled) {
            return Err(ApprovalRefusal::NotWaiting.message(LOST_ANSWER).into());
        }
        let refused = ctx.state(|state| {
            let why = number.and_then(|number| state.outside.refusal_of(number));
            why.map(str::to_owned)
        });
        if let Some(why) = refused {
            return Err(why.into());
        }
        // The validator may have run before another answer was taken (docs/libraries.md, Temporal SDK: updates are
        // checked before any of them is handled).
        taken.map(drop).map_err(|refusal| match refusal {
            Refusal::BeingStored if !ctx.state(is_open_again) => {
                Refusal::Answered.to_string().into()
            }
            other => other.to_string().into(),
        })
    }

    #[update_validator(resolve_approval)]
    fn check_approval(
        &self,
        _ctx: &WorkflowContextView,
        answer: &Lenient<ResolveApproval>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(refusal) = self.refusal_of(answer) {
            return Err(ApprovalRefusal::Invalid.message(refusal.text()).into());
        }
        let answer = answer
            .0
            .as_ref()
            .map_err(|error| ApprovalRefusal::Invalid.message(error))?;
        self.outside
            .check(answer, Through::Update)
            .map_err(|refusal| refusal.to_string().into())
    }

    /// Takes the answer to an approval from the command line (`temporal workflow signal`). An unfit answer is ignored,
    /// because a signal has no answer; query `status` tells the reason.
    #[signal(name = "resolve_approval")]
    pub fn resolve_by_signal(
        &mut self,
        ctx: &mut SyncWorkflowContext<Self>,
        answer: Lenient<ResolveApproval>,
    ) {
        if let Some(answer) = self.taken(ctx, answer) {
            let _ = self.outside.resolve(answer, Through::Signal);
        }
    }

    /// Notes that the client's result for a client tool is stored.
    #[signal]
    pub fn tool_result(
        &mut self,
        ctx: &mut SyncWorkflowContext<Self>,
        stored: Lenient<ToolResultStored>,
    ) {
        if let Some(stored) = self.taken(ctx, stored) {
            self.outside.result_stored(stored.execution_id);
        }
    }

    /// Returns the turn's current step and phase.
    #[query]
    pub fn status(&self, _ctx: &WorkflowContextView) -> TurnStatus {
        self.turn_status()
    }
}

const EXAMPLE_INPUT: &str = r#"{"conversation_id":"demo","message":{"content":"Hello"}}"#;

fn invalid(message: String) -> ApplicationFailure {
    ApplicationFailure::builder(message)
        .type_name(FailureCode::InvalidInput.into())
        .non_retryable(true)
        .build()
}

/// Checks the workflow's id. The engine runs one workflow per id at a time. One turn of a conversation at a time
/// follows only when the workflow's id comes from the conversation's id.
fn check_workflow_id(workflow_id: &str, input: &TurnInput) -> Result<(), String> {
    let conversation_id = &input.conversation_id;
    ConversationName::check_id(conversation_id, input.tenant())
        .map_err(|flaw| format!("{flaw}. The input looks like {EXAMPLE_INPUT}"))?;
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

async fn run_turn(
    ctx: &WorkflowContext<AgentExecution>,
    input: &TurnInput,
    message: Message,
) -> Result<Outcome, CallError> {
    let mut turn = start_turn(ctx, input, message);
    let loaded = turn.load(input).await?;
    if loaded.status() == AgentExecutionStatus::Running {
        if let Some(reason) = &loaded.cancel_reason {
            turn.cancellation.cancel_with_reason(reason);
        }
        set_search_attributes(ctx, input, &loaded.agent);
        return after_turn::run_followed(turn, &loaded).await;
    }
    // The message was delivered twice and its turn has ended, or the sub-agent has ended or may not begin.
    Ok(Outcome::Ended(TurnEnd {
        status: loaded.status(),
        steps: 0,
        failure: None,
    }))
}

/// Returns the message of the next turn; `None` without a waiting message. The run looks at the store only when somebody
/// has rung, or when the last look found messages (invariant 4, linear history).
async fn next_message(
    ctx: &WorkflowContext<AgentExecution>,
    input: &TurnInput,
    message_id: &str,
    ended: &Result<Outcome, CallError>,
) -> Option<Message> {
    // The next run of an unfinished turn looks itself.
    if matches!(ended, Ok(Outcome::ContinueAt(_))) || input.delegation.is_some() {
        return None;
    }
    let message_id = ended.is_ok().then_some(message_id);
    let mut must_look = ctx.state(|state| state.inbox.may_have_more());
    for _ in 0..MAX_LAST_LOOKS {
        if !must_look {
            break;
        }
        calls::look(ctx, &input.conversation_id, message_id).await;
        must_look = ctx.state(|state| state.inbox.has_rung());
    }
    ctx.state_mut(AgentExecution::take_next)
}

/// True when the run may go on with another turn: the turn has ended, and the run is young. The engine would hold back
/// a run after a young run (docs/engine.md, Continue-as-new waits for a second).
fn may_stay(
    ctx: &WorkflowContext<AgentExecution>,
    input: &TurnInput,
    ended: &Result<Outcome, CallError>,
) -> bool {
    matches!(ended, Ok(Outcome::Ended(_)))
        && input.delegation.is_none()
        && !ctx.cancellation_token().is_cancelled()
        && !ctx.continue_as_new_suggested()
        && is_young(ctx)
}

fn is_young(ctx: &WorkflowContext<AgentExecution>) -> bool {
    let (now, start) = (ctx.workflow_time(), ctx.info().start_time());
    let age = now.zip(start).map(|(now, start)| now.duration_since(start));
    age.is_some_and(|age| age.is_ok_and(|age| age < YOUNG))
}

fn start_turn<'a>(
    ctx: &'a WorkflowContext<AgentExecution>,
    input: &TurnInput,
    message: Message,
) -> Turn<'a> {
    // The token is a child of the run's token, so `temporal workflow cancel` ends the turn like the signal `cancel`.
    let cancellation = ctx.cancellation_token().child_token();
    let from_step = ctx.state(|state| state.first_step_of(&message.id));
    ctx.state_mut(|state| {
        state.current = Some(CurrentTurn {
            message_id: message.id.clone(),
            agent_execution_id: agent_execution_id(input, &message.id),
            cancellation: cancellation.clone(),
            step: from_step,
            phase: Phase::Starting,
        });
    });
    Turn::new(ctx, input, message, from_step, cancellation)
}

/// Sets the search attributes of a sub-agent, or of a turn that an operator started by hand. The gateway sets them at
/// the start of its turns.
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
    let tenant = input.tenant();
    ctx.upsert_search_attributes([
        CONVERSATION_ID.value_set(input.conversation_id.clone()),
        AGENT_NAME.value_set(agent.to_owned()),
        TENANT_ID.value_set(tenant.to_owned()),
        TURN_STATUS.value_set(AgentExecutionStatus::Running.into()),
    ]);
}

/// Lets the update handlers end; their answers are stored by now. The engine would fail the handlers that a closing run
/// leaves behind, and their callers would hear that another person has answered.
async fn answer_callers(ctx: &WorkflowContext<AgentExecution>) {
    // The wait fails when the run is cancelled. The handlers have ended by then.
    let _ = ctx.wait_condition(|_| ctx.all_handlers_finished()).await;
}

/// Ends the run: with the turn of the message `next`, a new run for the current turn, or the turn's result.
fn finish(
    ctx: &WorkflowContext<AgentExecution>,
    input: TurnInput,
    message: Message,
    ended: Result<Outcome, CallError>,
    next: Option<Message>,
) -> WorkflowResult<TurnOutput> {
    let continue_at = match &ended {
        Ok(Outcome::ContinueAt(next)) => Some(*next),
        _ => None,
    };
    let is_sub_agent = input.delegation.is_some();
    let message_id = message.id.clone();
    if continue_at.is_some() || next.is_some() {
        let (has_waiting, anonymous_messages) =
            ctx.state(|state| (state.inbox.may_have_more(), state.anonymous_messages));
        let goes_on_with = continue_at.filter(|_| !is_sub_agent).map(|_| message);
        let submit = |message: Message| Submit {
            message_id: Some(message.id),
            // The store has the content already.
            ..Submit::default()
        };
        let next = TurnInput {
            message: goes_on_with.or(next).map(submit),
            has_waiting,
            anonymous_messages,
            from_step: continue_at.map_or(0, |next| next.step),
            goes_on: continue_at.is_some(),
            among_tools: continue_at.is_some_and(|next| next.among_tools),
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
            if status == AgentExecutionStatus::Cancelled && ctx.cancellation_token().is_cancelled()
            {
                return Err(WorkflowTermination::cancelled());
            }
            Ok(TurnOutput {
                message_id,
                status: status.into(),
                steps,
            })
        }
        Ok(Outcome::Ended(TurnEnd {
            failure: Some(failure),
            ..
        }))
        | Err(CallError::Failed(failure)) => Err(ApplicationFailure::builder(failure.message)
            .type_name(failure.code.into())
            .non_retryable(true)
            .build()
            .into()),
        Err(CallError::Cancelled) | Ok(Outcome::ContinueAt(_)) => {
            Err(WorkflowTermination::cancelled())
        }
    }
}
