//! How each activity is called: time-outs, retries, cancellation, and what its failure means.
//!
//! Must not be here: in which order activities are called (`turn.rs`, `tools.rs`).

use std::time::Duration;

use everturn_proto::{
    activities::AgentActivities,
    turn::{
        AfterTurnInput, AfterTurnPlan, AnnounceCancelRequest, ClaimedRemoteTool, LoadTurnRequest,
        LoadedTurn, PlannedCall, RecordRemoteToolRequest, RunToolRequest, RunToolResult,
        SaveRequest, SaveResult, ThinkRequest, ThinkResult,
    },
    words::FailureCode,
};
use temporalio_common::{
    ActivityDefinition, data_converters::TemporalDeserializable, error::IncomingError,
};
use temporalio_workflow::{
    ActivityCancellationType, ActivityCloseTimeouts, ActivityExecutionError, ActivityOptions,
    LocalActivityOptions, RetryPolicy, WorkflowCancellationToken, WorkflowContext,
};

use crate::AgentExecution;

/// A worker that sends no heartbeat for this long is taken for dead. Most often a gateway has seen sooner that the worker's
/// lease is over; this helps when none has. Workers send a heartbeat every ten seconds.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a workflow task may take before the engine gives it to another worker, which repeats its saves (invariant 3,
/// idempotent saves). It is what a turn waits for when its worker dies within such a task. A save that takes long does not
/// end a task: the worker reports after four fifths of the time that it goes on.
pub const TASK_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a save or load is tried as a local activity, before it is tried as an ordinary one. A store that is down
/// must not hold the workflow task (invariant 3, idempotent saves).
const LOCAL_SAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it is tried so. With the pauses between the tries this takes about as long. The SDK does not end a local
/// activity whose time is over while it waits for its next try (docs/libraries.md, Temporal SDK: a local activity
/// outlives its time).
const LOCAL_SAVE_ATTEMPTS: u32 = 8;
/// How long the announcement of a cancel may take. The activity only hands it over, and waits for nobody.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one try of a save as an ordinary activity may take.
const SAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one try of planning the hooks after a turn may take: an MCP server may have to start for it.
const PLAN_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a turn waits for its store to come back before it fails: longer than any maintenance window.
const STORE_OUTAGE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// What the Temporal UI says of a save that is tried as an ordinary activity.
const STORE_WAS_AWAY: &str = "the store was away: saving again";
/// What it says of an activity that its own worker could not do.
const NOT_HERE: &str = "its worker does not know what it needs: asking others";
/// How often the engine gives an LLM call or a tool to a worker. Most of so many attempts cost nothing: they wait for the
/// store, or for a worker that knows the tool. How often a model is called or a tool is run, the store counts, and the
/// activity ends by that.
const ATTEMPTS: u32 = 100;
/// An LLM call or a tool ends itself when its limit is reached; the engine waits this much longer. A busy machine is late
/// by some seconds, and an attempt that the engine gave up on would be made again: paid again, or its outcome unknown.
const ATTEMPT_GRACE: Duration = Duration::from_secs(10);
/// How long an LLM call may wait within one attempt for the limits that the configuration sets its provider. A worker that
/// dies meanwhile is noticed by its heartbeats.
const PROVIDER_WAIT: Duration = Duration::from_mins(10);
/// The number of LLM time-outs after which the turn ends instead of paying for the same long answer again.
const LLM_TIMEOUTS: u32 = 2;

/// Why a call did not give a result.
#[derive(Debug, Clone)]
pub(crate) enum CallError {
    /// The turn was cancelled.
    Cancelled,
    /// The call failed for good.
    Failed(Failure),
}

/// The code and the text of a failure.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// Its code.
    pub(crate) code: FailureCode,
    /// A sentence for people.
    pub(crate) message: String,
}

impl Failure {
    fn internal(message: String) -> Self {
        Self {
            code: FailureCode::Internal,
            message,
        }
    }
}

type Result<T> = std::result::Result<T, CallError>;

/// Takes the message into the turn.
pub(crate) async fn load_turn(
    ctx: &WorkflowContext<AgentExecution>,
    request: LoadTurnRequest,
) -> Result<LoadedTurn> {
    call_store(ctx, || AgentActivities::load_turn, request).await
}

/// Asks for the turn again, with the epoch that the store gave this run. This is an ordinary activity: the engine takes
/// the request from the newest run alone, and an older one, whose worker does not know yet, gets no further.
pub(crate) async fn load_turn_again(
    ctx: &WorkflowContext<AgentExecution>,
    request: LoadTurnRequest,
) -> Result<LoadedTurn> {
    let options = store_options("a turn runs already: taking it over");
    let answer = ctx
        .execute_activity(AgentActivities::load_turn, request, options)
        .await;
    answer.map_err(|error| store_error(&error))
}

/// Persists one batch. It is not cancelled with the turn, because what happened must be saved.
pub(crate) async fn save(
    ctx: &WorkflowContext<AgentExecution>,
    request: SaveRequest,
) -> Result<SaveResult> {
    call_store(ctx, || AgentActivities::save_event, request).await
}

/// Plans the hooks that run after a turn, on a worker of `queue`, or of the workflow's own.
pub(crate) async fn begin_after_turn<W>(
    ctx: &WorkflowContext<W>,
    cancellation: &WorkflowCancellationToken,
    input: AfterTurnInput,
) -> Result<AfterTurnPlan> {
    let options = ActivityOptions::with_start_to_close_timeout(PLAN_TIMEOUT)
        .maybe_task_queue(input.tool_queue.clone())
        .cancellation_token(cancellation.clone())
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(Duration::from_secs(1))
                .maximum_interval(Duration::from_secs(30))
                .build(),
        )
        .build();
    let planned = ctx
        .execute_activity(AgentActivities::begin_after_turn, input, options)
        .await;
    planned.map_err(|error| call_error(&error))
}

/// Claims a remote tool for this run. The run may ask again, because it schedules the tool's activity only after it has
/// the answer.
pub(crate) async fn claim_remote_tool(
    ctx: &WorkflowContext<AgentExecution>,
    request: RunToolRequest,
) -> Result<ClaimedRemoteTool> {
    call_store(ctx, || AgentActivities::claim_remote_tool, request).await
}

/// Records how a remote tool ended. It is not cancelled with the turn.
pub(crate) async fn record_remote_tool(
    ctx: &WorkflowContext<AgentExecution>,
    request: RecordRemoteToolRequest,
) -> Result<RunToolResult> {
    call_store(ctx, || AgentActivities::record_remote_tool, request).await
}

/// Calls an activity of the store, first as a local activity. When the store does not answer for longer, or this worker
/// does not know what the activity needs, calls it as an ordinary one.
async fn call_store<A>(
    ctx: &WorkflowContext<AgentExecution>,
    activity: impl Fn() -> A,
    request: A::Input,
) -> Result<A::Output>
where
    A: ActivityDefinition,
    A::Input: Clone,
    A::Output: TemporalDeserializable,
{
    let mut answer = ctx
        .execute_local_activity(activity(), request.clone(), local_options())
        .await;
    if let Some(reason) = answer.as_ref().err().and_then(reason_for_a_longer_try) {
        answer = ctx
            .execute_activity(activity(), request, store_options(reason))
            .await;
    }
    answer.map_err(|error| store_error(&error))
}

/// Calls the model once, on a worker of `queue`, or of the workflow's own. When the turn is cancelled the activity stores
/// the text so far (`llm_partial`) before it ends, which is why the workflow waits for it.
pub(crate) async fn think(
    ctx: &WorkflowContext<AgentExecution>,
    cancellation: &WorkflowCancellationToken,
    queue: Option<&str>,
    request: ThinkRequest,
    timeout: Duration,
) -> Result<ThinkResult> {
    let mut timeouts = 0;
    loop {
        let longest = timeout + PROVIDER_WAIT + ATTEMPT_GRACE;
        let options = ActivityOptions::with_start_to_close_timeout(longest)
            .maybe_task_queue(queue.map(str::to_owned))
            .heartbeat_timeout(HEARTBEAT_TIMEOUT)
            .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
            .cancellation_token(cancellation.clone())
            .retry_policy(
                RetryPolicy::builder()
                    .initial_interval(Duration::from_secs(1))
                    .maximum_interval(Duration::from_secs(60))
                    .maximum_attempts(ATTEMPTS)
                    .build(),
            )
            .summary(format!("step {}", request.step))
            .build();
        let result = ctx
            .execute_activity(AgentActivities::llm_thinking, request.clone(), options)
            .await;
        let Err(error) = result else {
            return result.map_err(|error| call_error(&error));
        };
        match call_error(&error) {
            CallError::Failed(Failure { code, .. }) if code == FailureCode::LlmTimeout => {
                timeouts += 1;
                if timeouts >= LLM_TIMEOUTS {
                    return Err(CallError::Failed(Failure {
                        code,
                        message: format!(
                            "The model did not finish within {} s, twice. Raise `llm_timeout` of the agent, or ask for \
                             shorter answers.",
                            timeout.as_secs()
                        ),
                    }));
                }
            }
            other => return Err(other),
        }
    }
}

/// Runs one tool, on a worker of `queue`, or of the workflow's own. The error says why the activity recorded no end; the
/// save of the observe decides what that means.
pub(crate) async fn run_tool<W>(
    ctx: &WorkflowContext<W>,
    cancellation: &WorkflowCancellationToken,
    queue: Option<&str>,
    call: &PlannedCall,
    request: RunToolRequest,
) -> Result<RunToolResult> {
    let timeout = Duration::from_millis(u64::from(call.timeout_ms));
    let options = ActivityOptions::with_start_to_close_timeout(timeout + ATTEMPT_GRACE)
        .activity_id(call.execution_id.clone())
        .maybe_task_queue(queue.map(str::to_owned))
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        .cancellation_token(cancellation.clone())
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(Duration::from_secs(1))
                .maximum_interval(Duration::from_secs(10))
                .maximum_attempts(ATTEMPTS)
                .build(),
        )
        .summary(call.tool_name.clone())
        .build();
    let result = ctx
        .execute_activity(AgentActivities::tool_execution, request, options)
        .await;
    result.map_err(|error| call_error(&error))
}

/// Runs a tool that is over at once, as a local activity. What another try may mend, an ordinary activity tries. The local
/// one is not cancelled with the turn: no cancel reaches the run while it lasts.
pub(crate) async fn run_inline_tool(
    ctx: &WorkflowContext<AgentExecution>,
    cancellation: &WorkflowCancellationToken,
    queue: Option<&str>,
    call: &PlannedCall,
    request: RunToolRequest,
) -> Result<RunToolResult> {
    let timeout = Duration::from_millis(u64::from(call.timeout_ms));
    let options = LocalActivityOptions::builder()
        .start_to_close_timeout(timeout + ATTEMPT_GRACE)
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .cancellation_token(WorkflowCancellationToken::new())
        .summary(call.tool_name.clone())
        .build();
    let result = ctx
        .execute_local_activity(AgentActivities::tool_execution, request.clone(), options)
        .await;
    match &result {
        Err(error) if reason_for_a_longer_try(error).is_some() => {
            run_tool(ctx, cancellation, queue, call, request).await
        }
        _ => result.map_err(|error| call_error(&error)),
    }
}

/// Announces that this agent execution is cancelled, so that its activities ask the engine at once, and not with their next
/// heartbeat. Nothing depends on it: it is tried once, and its failure means nothing.
pub(crate) async fn announce_cancel(
    ctx: &WorkflowContext<AgentExecution>,
    agent_execution_id: String,
) {
    let options = LocalActivityOptions::builder()
        .schedule_to_close_timeout(ANNOUNCEMENT_TIMEOUT)
        .start_to_close_timeout(ANNOUNCEMENT_TIMEOUT)
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .cancellation_token(WorkflowCancellationToken::new())
        .build();
    let request = AnnounceCancelRequest { agent_execution_id };
    let _ = ctx
        .execute_local_activity(AgentActivities::announce_cancel, request, options)
        .await;
}

/// Returns the options of a save or load as a local activity, which costs one marker instead of a server round trip.
/// The token is detached, so that cancelling the turn does not cancel its saves.
fn local_options() -> LocalActivityOptions {
    LocalActivityOptions::builder()
        .schedule_to_close_timeout(LOCAL_SAVE_TIMEOUT)
        .start_to_close_timeout(LOCAL_SAVE_TIMEOUT)
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(Duration::from_millis(100))
                .maximum_interval(Duration::from_secs(1))
                .maximum_attempts(LOCAL_SAVE_ATTEMPTS)
                .build(),
        )
        .cancellation_token(WorkflowCancellationToken::new())
        .build()
}

/// Returns the options of a save or load as an ordinary activity, which also waits for a store that is away for longer.
fn store_options(summary: &str) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: STORE_OUTAGE_LIMIT,
        start_to_close: SAVE_TIMEOUT,
    })
    .retry_policy(
        RetryPolicy::builder()
            .initial_interval(Duration::from_secs(1))
            .maximum_interval(Duration::from_secs(30))
            .build(),
    )
    .cancellation_token(WorkflowCancellationToken::new())
    .summary(summary.to_owned())
    .build()
}

/// Returns why an activity is worth a longer try; `None` when it said that trying again will not help.
fn reason_for_a_longer_try(error: &ActivityExecutionError) -> Option<&'static str> {
    match error.reason() {
        Some(IncomingError::Application(application)) => {
            if application.type_name().map(FailureCode::from) == Some(FailureCode::NotHere) {
                return Some(NOT_HERE);
            }
            (!application.is_non_retryable()).then_some(STORE_WAS_AWAY)
        }
        _ if matches!(error, ActivityExecutionError::Serialization(_)) => None,
        _ => Some(STORE_WAS_AWAY),
    }
}

/// Returns what a failed activity of the store means for the turn. One that said nothing has waited for the store.
fn store_error(error: &ActivityExecutionError) -> CallError {
    let is_application = matches!(error.reason(), Some(IncomingError::Application(_)));
    match call_error(error) {
        CallError::Failed(Failure { message, .. }) if !is_application => {
            CallError::Failed(Failure {
                code: FailureCode::StoreUnavailable,
                message,
            })
        }
        other => other,
    }
}

/// Returns what a failed activity means for the turn.
fn call_error(error: &ActivityExecutionError) -> CallError {
    if error.as_cancelled().is_some() {
        return CallError::Cancelled;
    }
    CallError::Failed(match error.reason() {
        Some(IncomingError::Application(application)) => Failure {
            code: application
                .type_name()
                .map_or(FailureCode::Internal, FailureCode::from),
            message: application.source_error().to_string(),
        },
        Some(IncomingError::Timeout(_)) => Failure::internal(
            "The activity ran out of time or its worker died too often.".to_owned(),
        ),
        _ => Failure::internal(error.to_string()),
    })
}
