//! The activities of a worker, reduced to their calls of the store and of the model, in the order of the product's
//! activities. Between two calls the schedule may stop the worker for ever.

use everturn_proto::{
    Json, ids,
    turn::{
        AgentDefinition, LlmCompleteState, LoadTurnRequest, LoadedTurn, PlannedCall,
        ReadInboxRequest, RunToolRequest, RunToolResult, SaveRequest, SaveResult, ThinkRequest,
        ThinkResult, ToolCall,
    },
    words::{AgentExecutionStatus, Effect, FailureCode, FinishReason, ToolStatus},
};
use everturn_store::{
    BeginTurn, CompletedStep, DayBudget, EventWriter, OnUnknownAgent, StepClaim, StepClaims,
    StepKey, StoreError, ToolClaim, ToolClaims, ToolEnd, ToolKey, TurnStart, Turns,
};
use serde::Serialize;
use temporalio_common::protos::temporal::api::common::v1::Payload;

use crate::{
    engine::{ActivityEnd, Attempt},
    world::{World, payload, value},
};

/// The most steps of a turn.
const MAX_STEPS: u32 = 4;

/// How an attempt ended.
pub(crate) enum End {
    /// The activity has ended.
    Ended(ActivityEnd),
    /// The engine makes another attempt.
    Again(String),
}

type Result<T> = std::result::Result<T, End>;

/// Runs an attempt of an activity. `attempt` is absent for a local activity.
pub(crate) async fn run(
    world: &World,
    name: &str,
    input: &Payload,
    attempt: Option<Attempt>,
) -> End {
    let ended = match name {
        "load_turn_activity" => done(load(world, input).await),
        "read_inbox_activity" => done(read_inbox(world, input).await),
        "llm_thinking_activity" => done(think(world, input, attempt).await),
        "tool_execution_activity" => done(run_tool(world, input, attempt).await),
        "save_event_activity" => done(save(world, input).await),
        "announce_cancel_activity" => done(Ok(())),
        other => Err(failed(
            FailureCode::Internal,
            format!("no activity {other}"),
        )),
    };
    ended.unwrap_or_else(|end| end)
}

fn done<T: Serialize>(result: Result<T>) -> Result<End> {
    result.map(|result| End::Ended(ActivityEnd::Completed(payload(&result))))
}

fn failed(code: FailureCode, message: impl Into<String>) -> End {
    End::Ended(ActivityEnd::Failed {
        code: code.into(),
        message: message.into(),
        is_final: true,
    })
}

/// Returns the end of an activity after an error of the store, as `activities/src/failure.rs` decides.
fn from_store(error: &StoreError) -> End {
    if error.is_retryable() {
        return End::Again(error.to_string());
    }
    let code = match error {
        StoreError::RunReplaced { .. } => FailureCode::RunReplaced,
        _ => FailureCode::Internal,
    };
    failed(code, error.to_string())
}

fn read<T: serde::de::DeserializeOwned>(input: &Payload) -> Result<T> {
    value(input).map_err(|error| failed(FailureCode::InvalidInput, error))
}

/// The only agent.
pub(crate) fn agent() -> AgentDefinition {
    AgentDefinition {
        name: "default".to_owned(),
        model: Some("m1".to_owned()),
        max_steps: MAX_STEPS,
        ..AgentDefinition::default()
    }
}

async fn load(world: &World, input: &Payload) -> Result<LoadedTurn> {
    let request: LoadTurnRequest = read(input)?;
    world.schedule.step("loads the turn").await;
    let begin = BeginTurn {
        conversation_id: request.conversation_id,
        tenant_id: request.tenant_id.unwrap_or_else(|| "default".to_owned()),
        message_id: request.message_id,
        content: request.content,
        agent_execution_id: request.agent_execution_id,
        agent: agent(),
        on_unknown_agent: OnUnknownAgent::Begin,
        epoch: Some(request.epoch),
        tenant_budget: DayBudget::default(),
    };
    let message_id = begin.message_id.clone();
    let start = world
        .store
        .begin_turn(begin)
        .await
        .map_err(|error| from_store(&error))?;
    if let TurnStart::Begun(begun) = &start
        && begun.status == AgentExecutionStatus::Running
    {
        let mut facts = world.facts();
        facts.run_changes(&message_id, Some(begun.epoch), "a begin");
        facts.takes_over(&message_id, begun.epoch);
    }
    world.schedule.step("has loaded the turn").await;
    let begun = match start {
        TurnStart::Begun(begun) => begun,
        TurnStart::AskAgain { epoch } => {
            return Ok(LoadedTurn {
                ask_again: Some(epoch),
                ..LoadedTurn::default()
            });
        }
    };
    Ok(LoadedTurn {
        status: begun.status.into(),
        agent: "default".to_owned(),
        agent_hash: begun.agent.map(|agent| agent.hash).unwrap_or_default(),
        max_steps: MAX_STEPS,
        llm_total_timeout_ms: 60_000,
        epoch: begun.epoch,
        cancel_reason: begun.cancel_reason,
        ..LoadedTurn::default()
    })
}

async fn read_inbox(world: &World, input: &Payload) -> Result<everturn_proto::turn::Inbox> {
    let request: ReadInboxRequest = read(input)?;
    world.schedule.step("looks at the inbox").await;
    let inbox = world
        .store
        .read_inbox(&request)
        .await
        .map_err(|error| from_store(&error))?;
    world.schedule.step("has looked at the inbox").await;
    Ok(inbox)
}

async fn save(world: &World, input: &Payload) -> Result<SaveResult> {
    let request: SaveRequest = read(input)?;
    world.schedule.step("saves a batch").await;
    let saved = world
        .store
        .save(&request)
        .await
        .map_err(|error| from_store(&error))?;
    world
        .facts()
        .run_changes(&request.message_id, request.epoch, "a save");
    world.schedule.step("has saved a batch").await;
    Ok(SaveResult {
        last_sequence: 0,
        ..saved.result
    })
}

/// A model call that is paid. Dropped with its worker before its reply is stored, the reply is lost.
struct Call {
    world: World,
    attempt: Attempt,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.world.facts().call_is_cut(self.attempt);
    }
}

async fn think(world: &World, input: &Payload, attempt: Option<Attempt>) -> Result<ThinkResult> {
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
    world
        .facts()
        .run_changes(&request.message_id, step.epoch, "a claim");
    world
        .facts()
        .call_is_claimed(&request.message_id, attempt, &of);
    let _call = Call {
        world: world.clone(),
        attempt,
    };
    world.schedule.step("calls the model").await;
    world.facts().call_begins(&of);
    for _heartbeat in 0..2 {
        world.schedule.step("hears the model").await;
        if world.engine().must_stop(attempt) {
            return Err(End::Ended(ActivityEnd::Cancelled));
        }
    }
    let wants_tool = request.step + 1 < MAX_STEPS && world.choices().percent(40);
    let state = reply(&request, generation, wants_tool);
    let completed = world.store.complete_step(&step, state).await;
    let state = match completed.map_err(|error| from_store(&error))? {
        CompletedStep::Stored(state) => state,
        CompletedStep::CallIdsUsed(ids) => {
            return Err(failed(FailureCode::Internal, format!("{ids:?} are used")));
        }
    };
    world.facts().call_ends(attempt);
    world.schedule.step("has stored the reply").await;
    Ok(result(&state))
}

fn reply(request: &ThinkRequest, generation: u32, wants_tool: bool) -> LlmCompleteState {
    let call = |index| {
        let (message_id, run) = (&request.message_id, &request.agent_execution_id);
        let execution_id = ids::tool_execution_id(message_id, run, request.step, index);
        ToolCall {
            call_id: ids::call_id(&execution_id),
            execution_id,
            tool_name: "change".to_owned(),
            tool_input: Json::parse("{}").ok(),
            timeout_ms: 1000,
            effect: Effect::Once.into(),
            ..ToolCall::default()
        }
    };
    let finish = if wants_tool {
        FinishReason::ToolCalls
    } else {
        FinishReason::Stop
    };
    LlmCompleteState {
        text: "an answer".to_owned(),
        finish: finish.into(),
        tool_calls: wants_tool.then(|| call(0)).into_iter().collect(),
        input_tokens: 10,
        output_tokens: 1,
        generation,
        model: "m1".to_owned(),
        ..LlmCompleteState::default()
    }
}

fn result(state: &LlmCompleteState) -> ThinkResult {
    let planned = |call: &ToolCall| PlannedCall {
        execution_id: call.execution_id.clone(),
        tool_name: call.tool_name.clone(),
        timeout_ms: call.timeout_ms,
        ..PlannedCall::default()
    };
    ThinkResult {
        finish: state.finish.clone(),
        tool_calls: state.tool_calls.iter().map(planned).collect(),
        ..ThinkResult::default()
    }
}

async fn run_tool(
    world: &World,
    input: &Payload,
    attempt: Option<Attempt>,
) -> Result<RunToolResult> {
    let request: RunToolRequest = read(input)?;
    let key = ToolKey {
        conversation_id: request.conversation_id,
        message_id: request.message_id,
        agent_execution_id: request.agent_execution_id,
        step: request.step,
        execution_id: request.execution_id,
        epoch: request.epoch,
    };
    let claimant = attempt.map_or_else(|| "local".to_owned(), |attempt| format!("a{}", attempt.id));
    world.schedule.step("claims the tool").await;
    let claim = world.store.claim_tool(&key, &claimant).await;
    let end = match claim.map_err(|error| from_store(&error))? {
        ToolClaim::Ended(record) => return Ok(ran(record.status)),
        ToolClaim::Run { .. } => {
            world
                .facts()
                .run_changes(&key.message_id, key.epoch, "a claim of a tool");
            world.schedule.step("runs the tool").await;
            world.facts().tool_runs(&key.execution_id);
            tool_end(ToolStatus::Completed, "\"changed\"")
        }
        ToolClaim::OutcomeUnknown(_) => tool_end(ToolStatus::OutcomeUnknown, "\"unknown\""),
    };
    world.schedule.step("records the tool").await;
    let record = world.store.finish_tool(&key, end).await;
    let record = record.map_err(|error| from_store(&error))?;
    world.schedule.step("has recorded the tool").await;
    Ok(ran(record.status))
}

fn tool_end(status: ToolStatus, result: &str) -> ToolEnd {
    ToolEnd {
        is_error: status != ToolStatus::Completed,
        status,
        result: Json::parse(result).unwrap_or_default(),
        full_result: None,
        duration_ms: 1,
        events: Vec::new(),
    }
}

fn ran(status: ToolStatus) -> RunToolResult {
    RunToolResult {
        status: status.into(),
        observed: false,
    }
}
