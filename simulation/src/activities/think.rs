//! `llm_thinking_activity`, and the replies of the model. A reply may call tools: a worker's tool, a tool that a person
//! must approve, a client's tool, or a sub-agent.

use everturn_proto::{
    Json, ids,
    turn::{CallRule, LlmCompleteState, PlannedCall, ThinkRequest, ThinkResult, ToolCall},
    words::{AnswersFrom, ApprovalBy, Effect, FailureCode, FinishReason, ToolKind},
};
use everturn_store::{CompletedStep, StepClaim, StepClaims, StepKey};
use temporalio_common::protos::temporal::api::common::v1::Payload;

use super::{End, MAX_STEPS, Result, failed, from_store, read};
use crate::{
    engine::{ActivityEnd, Attempt},
    oracles,
    people::Ask,
    promises::{StepOf, WAIT_S},
    world::World,
};

/// The tool with which an agent gives a task to a sub-agent.
pub(super) const DELEGATE: &str = "delegate";
/// The agent of sub-agents.
pub(super) const HELPER: &str = "helper";
/// The input of [`DELEGATE`].
const TASK: &str = r#"{"agent":"helper","task":"help"}"#;
/// The most times that people turn to a call that waits for them.
const MAX_SESSIONS: usize = 3;

/// How often a call goes back to the queue of its provider, in 100 calls.
const QUEUED_CALLS: usize = 5;

/// A claimed model call, which is paid. Dropped with its worker before its reply is stored, the reply is lost.
struct Call {
    world: World,
    attempt: Attempt,
    step: StepKey,
    of: StepOf,
    generation: u32,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.world.facts().call_is_cut(self.attempt);
    }
}

pub(super) async fn think(
    world: &World,
    input: &Payload,
    attempt: Option<Attempt>,
) -> Result<ThinkResult> {
    let request: ThinkRequest = read(input)?;
    let Some(attempt) = attempt else {
        return Err(failed(FailureCode::Internal, "a local model call"));
    };
    let step = StepKey {
        conversation_id: request.conversation_id.clone(),
        message_id: request.message_id.clone(),
        agent_execution_id: request.agent_execution_id.clone(),
        step: request.step,
        epoch: Some(request.epoch),
    };
    world.schedule.step("claims the step").await;
    let claim = world.store.claim_step(&step, None).await;
    let generation = match claim.map_err(|error| from_store(&error))? {
        StepClaim::Stored(state) => return Ok(result(&state)),
        StepClaim::Call(call) => call.generation,
        StepClaim::Cancelled(reason) => {
            return Ok(ThinkResult {
                finish: FinishReason::Cancelled.into(),
                cancel_reason: Some(reason),
                ..ThinkResult::default()
            });
        }
    };
    let of = (request.agent_execution_id.clone(), request.step);
    {
        let mut facts = world.facts();
        facts.run_changes(&request.message_id, step.epoch, "a claim");
        facts.call_is_claimed(&request.message_id, attempt, &of);
        facts.promises.is_claimed(&of, generation);
    }
    let call = Call {
        world: world.clone(),
        attempt,
        step,
        of,
        generation,
    };
    call.run(&request).await
}

impl Call {
    /// Calls the model, and stores the reply.
    async fn run(&self, request: &ThinkRequest) -> Result<ThinkResult> {
        let world = &self.world;
        let (conversation, run) = (&request.conversation_id, &request.agent_execution_id);
        oracles::context_of_call(world, conversation, &request.message_id, run).await;
        if world.fault(QUEUED_CALLS) {
            return Err(self.give_back().await?);
        }
        world.schedule.step("calls the model").await;
        world.facts().call_begins(&self.of);
        for _heartbeat in 0..2 {
            world.schedule.step("hears the model").await;
            if world.engine().must_stop(self.attempt) {
                return Err(End::Ended(ActivityEnd::Cancelled));
            }
        }
        let calls = calls(world, request);
        let state = reply(calls, self.generation);
        let asks: Vec<_> = state.tool_calls.iter().filter_map(ask).collect();
        let completed = world.store.complete_step(&self.step, state).await;
        let state = match completed.map_err(|error| from_store(&error))? {
            CompletedStep::Stored(state) => state,
            CompletedStep::CallIdsUsed(ids) => {
                return Err(failed(FailureCode::Internal, format!("{ids:?} are used")));
            }
        };
        world.facts().call_ends(self.attempt);
        if self.generation == state.generation {
            self.note_reply(asks);
        }
        world.schedule.step("has stored the reply").await;
        Ok(result(&state))
    }

    /// Notes that the reply of the call is stored, with its questions to people and clients.
    fn note_reply(&self, asks: Vec<(Ask, String)>) {
        let world = &self.world;
        {
            let mut facts = world.facts();
            facts.run_changes(&self.step.message_id, self.step.epoch, "a reply");
            facts.promises.is_replied(&self.of, self.generation);
        }
        for (ask, call) in asks {
            let sessions = world.choices().below(MAX_SESSIONS + 1);
            world.people().asks(&call, ask, sessions);
        }
    }

    /// Gives the claim back, because the limits of the provider let no call begin. Returns the end of the attempt.
    async fn give_back(&self) -> Result<End> {
        let world = &self.world;
        world.facts().call_ends(self.attempt);
        world.schedule.step("gives the claim back").await;
        let released = world.store.release_step(&self.step, self.generation);
        released.await.map_err(|error| from_store(&error))?;
        let mut facts = world.facts();
        facts.promises.is_given_back(&self.of, self.generation);
        Ok(End::Again("the call waits for its provider".to_owned()))
    }
}

/// Chooses the tool calls of a reply: none, one or two.
fn calls(world: &World, request: &ThinkRequest) -> Vec<ToolCall> {
    let may_call = request.step + 1 < MAX_STEPS;
    let mut choices = world.choices();
    if !may_call || !choices.percent(50) {
        return Vec::new();
    }
    let root = ids::root_agent_execution_id(&request.conversation_id, &request.message_id);
    let is_root = root == request.agent_execution_id;
    let number = 1 + choices.below(2);
    (0..number)
        .filter_map(|index| {
            let mut kinds = vec![Kind::Plain, Kind::Approved, Kind::Approved, Kind::Client];
            // A sub-agent has no sub-agents.
            kinds.extend(is_root.then_some(Kind::Delegate));
            let kind = choices.one_of(kinds)?;
            Some(call(request, index, kind))
        })
        .collect()
}

/// The kinds of calls.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A tool of a worker.
    Plain,
    /// A tool of a worker, which a person must approve.
    Approved,
    /// A tool of a client.
    Client,
    /// A task for a sub-agent.
    Delegate,
}

/// Returns a call of a `once` tool of a worker.
pub(super) fn tool_call(execution_id: String, tool_name: &str) -> ToolCall {
    ToolCall {
        call_id: ids::call_id(&execution_id),
        execution_id,
        tool_name: tool_name.to_owned(),
        tool_input: Json::parse("{}").ok(),
        timeout_ms: 1000,
        effect: Effect::Once.into(),
        ..ToolCall::default()
    }
}

fn call(request: &ThinkRequest, index: usize, kind: Kind) -> ToolCall {
    let (message_id, run) = (&request.message_id, &request.agent_execution_id);
    let execution_id = ids::tool_execution_id(message_id, run, request.step, index);
    let call = tool_call(execution_id, "change");
    match kind {
        Kind::Plain => call,
        Kind::Approved => ToolCall {
            input_hash: ids::approval_hash(
                &call.tool_name,
                &call.tool_input.clone().unwrap_or_default(),
                "",
            ),
            approval_timeout_s: Some(WAIT_S),
            rule: Some(CallRule {
                by: ApprovalBy::Anyone.into(),
                answers_from: AnswersFrom::Gateway.into(),
                ..CallRule::default()
            }),
            ..call
        },
        Kind::Client => ToolCall {
            tool_name: "show".to_owned(),
            kind: ToolKind::Client.into(),
            timeout_ms: WAIT_S * 1000,
            ..call
        },
        Kind::Delegate => ToolCall {
            tool_name: DELEGATE.to_owned(),
            kind: ToolKind::Delegate.into(),
            tool_input: Json::parse(TASK).ok(),
            ..call
        },
    }
}

/// Returns the question of a call to the outside, and the tool execution.
fn ask(call: &ToolCall) -> Option<(Ask, String)> {
    let ask = if call.approval_timeout_s.is_some() {
        Ask::Approval(call.input_hash.clone())
    } else if call.kind() == ToolKind::Client {
        Ask::ClientTool
    } else {
        return None;
    };
    Some((ask, call.execution_id.clone()))
}

fn reply(tool_calls: Vec<ToolCall>, generation: u32) -> LlmCompleteState {
    let finish = if tool_calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    };
    LlmCompleteState {
        text: "an answer".to_owned(),
        finish: finish.into(),
        tool_calls,
        input_tokens: 10,
        output_tokens: 1,
        generation,
        model: "m1".to_owned(),
        ..LlmCompleteState::default()
    }
}

fn result(state: &LlmCompleteState) -> ThinkResult {
    ThinkResult {
        finish: state.finish.clone(),
        tool_calls: state.tool_calls.iter().map(planned_call).collect(),
        ..ThinkResult::default()
    }
}

/// Returns the data of a call for the workflow.
pub(super) fn planned_call(call: &ToolCall) -> PlannedCall {
    PlannedCall {
        execution_id: call.execution_id.clone(),
        tool_name: call.tool_name.clone(),
        timeout_ms: call.timeout_ms,
        kind: call.kind.clone(),
        approval_timeout_s: call.approval_timeout_s,
        input_hash: call.input_hash.clone(),
        answers_from: call.rule().answers_from,
        ..PlannedCall::default()
    }
}
