//! The activities of a worker, reduced to their calls of the store and of the model, in the order of the product's
//! activities. Between two calls the schedule may stop the worker for ever.
//!
//! - `think`: a model call, and the replies of the model
//! - `tools`: a run of a tool

mod think;
mod tools;

use everturn_proto::{
    turn::{
        AgentDefinition, LoadTurnRequest, LoadedTurn, ReadInboxRequest, SaveRequest, SaveResult,
    },
    words::{AgentExecutionStatus, FailureCode},
};
use everturn_store::{
    BeginTurn, BegunTurn, DayBudget, EventWriter, OnUnknownAgent, StoreError, TurnStart, Turns,
};
use serde::Serialize;
use temporalio_common::protos::temporal::api::common::v1::Payload;

use crate::{
    engine::{ActivityEnd, Attempt},
    oracles,
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
        "llm_thinking_activity" => done(think::think(world, input, attempt).await),
        "tool_execution_activity" => done(tools::run_tool(world, input, attempt).await),
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
    let (conversation_id, message_id) = (begin.conversation_id.clone(), begin.message_id.clone());
    let start = world
        .store
        .begin_turn(begin)
        .await
        .map_err(|error| from_store(&error))?;
    if let TurnStart::Begun(begun) = &start {
        note_begin(world, &conversation_id, &message_id, begun).await;
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

/// Notes the begin of a turn, and checks it.
async fn note_begin(world: &World, conversation_id: &str, message_id: &str, begun: &BegunTurn) {
    let is_running = begun.status == AgentExecutionStatus::Running;
    {
        let mut facts = world.facts();
        if is_running {
            facts.run_changes(message_id, Some(begun.epoch), "a begin");
            facts.takes_over(message_id, begun.epoch);
        } else if begun.is_new && begun.status == AgentExecutionStatus::Cancelled {
            facts.withdrawn.insert(message_id.to_owned());
        }
    }
    if begun.is_new {
        oracles::begin_of_interrupt(world, conversation_id, message_id, is_running).await;
    }
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
