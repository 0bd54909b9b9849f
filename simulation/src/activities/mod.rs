//! The activities of a worker, reduced to their calls of the store and of the model, in the order of the product's
//! activities. Between two calls the schedule may stop the worker for ever.
//!
//! - `load`: the begin of turns, of sub-agents, and of the hooks after a turn
//! - `think`: a model call, and the replies of the model
//! - `tools`: a run of a tool

mod load;
mod think;
mod tools;

use everturn_proto::{
    turn::{ReadInboxRequest, SaveRequest, SaveResult, SaveSteer, save_request::Batch},
    words::FailureCode,
};
use everturn_store::{EventWriter, StoreError, Turns};
use serde::Serialize;
use temporalio_common::protos::temporal::api::common::v1::Payload;

use crate::{
    engine::{ActivityEnd, Attempt},
    oracles,
    payloads::{payload, value},
    world::World,
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
        "load_turn_activity" => done(load::load(world, input).await),
        "read_inbox_activity" => done(read_inbox(world, input).await),
        "llm_thinking_activity" => done(think::think(world, input, attempt).await),
        "tool_execution_activity" => done(tools::run_tool(world, input, attempt).await),
        "save_event_activity" => done(save(world, input).await),
        "begin_after_turn_activity" => done(load::begin_after_turn(world, input).await),
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
    if error.is_retryable() || matches!(error, StoreError::Superseded { .. }) {
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
    // A message that was cancelled after the look of the run joins no turn.
    if let Some(Batch::Steer(SaveSteer { message_id })) = &request.batch
        && oracles::is_taken(world, message_id).await
    {
        world.facts().promises.begins(message_id, false);
    }
    world.schedule.step("has saved a batch").await;
    Ok(SaveResult {
        last_sequence: 0,
        ..saved.result
    })
}
