//! How each activity is called: time-outs, retries, cancellation, and the meaning of its failure.
//!
//! Must not be here: in which order activities are called (`turn.rs`, `tools.rs`).

use std::time::Duration;

use everturn_proto::{
    activities::AgentActivities,
    limits::{
        HEARTBEAT_TIMEOUT, LLM_FIRST_PAUSE_S, LLM_LONGEST_PAUSE_S, MAX_PROVIDER_WAIT_S,
        MIN_PROVIDER_WAIT_S, PROVIDER_QUEUE_LIMIT_S,
    },
    turn::{
        AfterTurnInput, AfterTurnPlan, AnnounceCancelRequest, ClaimedRemoteTool, LoadTurnRequest,
        LoadedTurn, PlannedCall, ReadInboxRequest, RecordRemoteToolRequest, RunToolRequest,
        RunToolResult, SaveRequest, SaveResult, ThinkRequest, ThinkResult,
    },
    words::FailureCode,
};
use temporalio_common::{
    ActivityDefinition, data_converters::TemporalDeserializable, error::IncomingError,
};
use temporalio_workflow::{
    ActivityCancellationType, ActivityCloseTimeouts, ActivityExecutionError, ActivityOptions,
    LocalActivityOptions, RetryPolicy, WaitConditionOptions, WorkflowCancellationToken,
    WorkflowContext,
};

use crate::{AgentExecution, refused::readable};

/// The limit of a workflow task. After the limit the engine gives the task to another worker, which repeats its saves
/// (invariant 3, idempotent saves). A turn waits this long when its worker dies within a task. A slow save does not end
/// a task, because the worker sends a sign of life after four fifths of the limit.
pub const TASK_TIMEOUT: Duration = Duration::from_secs(4);
/// The time for a save or load as a local activity. After it, the run uses an ordinary activity, because a store that
/// is down must not hold the workflow task (invariant 3, idempotent saves).
const LOCAL_SAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most attempts as a local activity. The attempts and the pauses take about `LOCAL_SAVE_TIMEOUT`. The SDK
/// does not end a local activity at its time limit while a retry is due (docs/libraries.md, Temporal SDK: a local
/// activity outlives its time).
const LOCAL_SAVE_ATTEMPTS: u32 = 8;
/// The limit for the announcement of a cancel. The activity only hands the announcement over, and waits for no reader.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(1);
/// The limit for one attempt of a save as an ordinary activity.
const SAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// The limit for one attempt to plan the hooks after a turn: an MCP server may have to start first.
const PLAN_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a turn waits for a store outage to end before the turn fails: longer than any maintenance window.
const STORE_OUTAGE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// The Temporal UI's summary of a save as an ordinary activity.
const STORE_WAS_AWAY: &str = "the store was away: saving again";
/// The Temporal UI's summary of an activity that the run's own worker could not carry out.
const NOT_HERE: &str = "the worker lacks a needed agent, tool or provider: asking another worker";
/// The most attempts that the engine makes of a tool. Most attempts cost nothing: they wait for the
/// store, or for a worker with the tool. The store counts the real model calls and tool executions, and the activity
/// ends at their own limits.
const ATTEMPTS: u32 = 100;
/// The most attempts of an LLM call that only wait for the configured limits of the provider. The activity ends the wait
/// by its time, so these attempts take none of the attempts of failed calls.
const QUEUE_ATTEMPTS: u32 = PROVIDER_QUEUE_LIMIT_S / MIN_PROVIDER_WAIT_S;
/// The most attempts that the engine makes of an LLM call. Besides the attempts of [`ATTEMPTS`] and [`QUEUE_ATTEMPTS`], a
/// step waits for a provider that refuses its calls: an hour at the most, with pauses of 15 s at the least after the
/// first minute.
const THINK_ATTEMPTS: u32 = ATTEMPTS + 300 + QUEUE_ATTEMPTS;
/// The engine's extra time beyond the limit of an LLM call or a tool, which ends itself at its limit. A busy machine is
/// late by some seconds. The engine would repeat an attempt that it gave up on: the call is paid again, or its outcome
/// is unknown.
const ATTEMPT_GRACE: Duration = Duration::from_secs(10);
/// How long one attempt of an LLM call may wait for the configured limits of its provider. The worker usually waits for a
/// shorter time, which only the worker knows. The engine notices the death of the worker by missing heartbeats meanwhile.
const PROVIDER_WAIT: Duration = Duration::from_secs(MAX_PROVIDER_WAIT_S as u64);
/// The engine's pauses between the attempts of an LLM call.
const LLM_FIRST_PAUSE: Duration = Duration::from_secs(LLM_FIRST_PAUSE_S as u64);
const LLM_LONGEST_PAUSE: Duration = Duration::from_secs(LLM_LONGEST_PAUSE_S as u64);
/// The number of LLM time-outs that ends the turn. More attempts would pay for an equally long answer again.
const LLM_TIMEOUTS: u32 = 2;

/// The reason of a call without a result.
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
    /// The failure's code.
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

/// Loads the turn: takes the message into the turn.
pub(crate) async fn load_turn(
    ctx: &WorkflowContext<AgentExecution>,
    request: LoadTurnRequest,
) -> Result<LoadedTurn> {
    call_store(ctx, || AgentActivities::load_turn, request).await
}

/// Loads the turn again, with the epoch from the store. The call is an ordinary activity, because the engine accepts
/// its command only from the newest run. An older run, whose worker does not yet know of the newer run, gets no
/// further.
pub(crate) async fn load_turn_again(
    ctx: &WorkflowContext<AgentExecution>,
    request: LoadTurnRequest,
) -> Result<LoadedTurn> {
    let options = store_options("a turn runs already: taking it over");
    let answer = readable(
        ctx,
        ctx.execute_activity(AgentActivities::load_turn, request, options),
    )
    .await;
    answer.map_err(|error| store_error(&error))
}

/// Looks at the inbox: stores the contents of signals, and reads the waiting messages. Returns the reason why the turn of
/// `message_id` must end. `message_id` is absent when the run ends without the end of its turn. A failed look changes nothing, because the messages stay in the store for the next run.
pub(crate) async fn look(
    ctx: &WorkflowContext<AgentExecution>,
    conversation_id: &str,
    message_id: Option<&str>,
) -> Option<String> {
    let mut look = ctx.state_mut(|state| state.inbox.begin_look());
    let request = ReadInboxRequest {
        conversation_id: conversation_id.to_owned(),
        message_id: message_id.map(str::to_owned),
        submits: std::mem::take(&mut look.submits),
        cancels: std::mem::take(&mut look.cancels),
    };
    let found = call_store(ctx, || AgentActivities::read_inbox, request).await;
    let found = found.ok();
    let reason = found.as_ref().and_then(|found| found.cancel_reason.clone());
    ctx.state_mut(|state| state.inbox.end_look(&look, found));
    reason
}

/// Waits for a ring. Returns false when `over` comes first.
pub(crate) async fn rung(
    ctx: &WorkflowContext<AgentExecution>,
    over: WorkflowCancellationToken,
) -> bool {
    let options = WaitConditionOptions::builder()
        .cancellation_token(over)
        .build();
    let rung = ctx.wait_condition_with_options(|state| state.inbox.has_rung(), options);
    rung.await.is_ok()
}

/// Waits until the looks for all rings have ended. The wait goes on after a cancel of the run, like the looks.
pub(crate) async fn looked(ctx: &WorkflowContext<AgentExecution>) {
    let options = WaitConditionOptions::builder()
        .cancellation_token(WorkflowCancellationToken::new())
        .build();
    let looked = ctx.wait_condition_with_options(|state| !state.inbox.has_rung(), options);
    // Nobody cancels the new token, so the wait ends with the last look.
    let _ = looked.await;
}

/// Persists one batch. A cancel of the turn does not cancel the save, because finished work must be saved.
pub(crate) async fn save(
    ctx: &WorkflowContext<AgentExecution>,
    request: SaveRequest,
) -> Result<SaveResult> {
    call_store(ctx, || AgentActivities::save_event, request).await
}

/// Plans the hooks after a turn, on a worker of `queue`, or of the workflow's own queue.
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
    let planned = readable(
        ctx,
        ctx.execute_activity(AgentActivities::begin_after_turn, input, options),
    )
    .await;
    planned.map_err(|error| call_error(&error))
}

/// Claims a remote tool for the run. A repeated claim is safe, because the run schedules the tool's activity only
/// after the claim's result.
pub(crate) async fn claim_remote_tool(
    ctx: &WorkflowContext<AgentExecution>,
    request: RunToolRequest,
) -> Result<ClaimedRemoteTool> {
    call_store(ctx, || AgentActivities::claim_remote_tool, request).await
}

/// Records the end of a remote tool. A cancel of the turn does not cancel the record.
pub(crate) async fn record_remote_tool(
    ctx: &WorkflowContext<AgentExecution>,
    request: RecordRemoteToolRequest,
) -> Result<RunToolResult> {
    call_store(ctx, || AgentActivities::record_remote_tool, request).await
}

/// Calls an activity of the store, first as a local activity. Calls an ordinary activity when the store does not answer
/// in time, or when this worker lacks the activity's agent or tools.
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
    let mut answer = readable(
        ctx,
        ctx.execute_local_activity(activity(), request.clone(), local_options()),
    )
    .await;
    if let Some(reason) = answer.as_ref().err().and_then(reason_for_a_longer_try) {
        answer = readable(
            ctx,
            ctx.execute_activity(activity(), request, store_options(reason)),
        )
        .await;
    }
    answer.map_err(|error| store_error(&error))
}

/// Calls the model once, on a worker of `queue`, or of the workflow's own queue. After a cancel the workflow waits for
/// the activity, because the activity stores the text so far (`llm_partial`) before its end.
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
                    .initial_interval(LLM_FIRST_PAUSE)
                    .maximum_interval(LLM_LONGEST_PAUSE)
                    .maximum_attempts(THINK_ATTEMPTS)
                    .build(),
            )
            .summary(format!("step {}", request.step))
            .build();
        let result = readable(
            ctx,
            ctx.execute_activity(AgentActivities::llm_thinking, request.clone(), options),
        )
        .await;
        let Err(error) = result else {
            return result.map_err(|error| call_error(&error));
        };
        match call_error(&error) {
            CallError::Failed(Failure { code, message }) if code == FailureCode::LlmTimeout => {
                timeouts += 1;
                if timeouts >= LLM_TIMEOUTS {
                    return Err(CallError::Failed(Failure {
                        code,
                        message: format!(
                            "{message} The call was made twice. Raise the limit of the agent, or ask for shorter answers."
                        ),
                    }));
                }
            }
            other => return Err(other),
        }
    }
}

/// Runs one tool, on a worker of `queue`, or of the workflow's own queue. After a silence of `heartbeat_timeout`, the
/// engine counts the tool's worker as dead. The error tells why the activity recorded no
/// end; the save of the observe decides the meaning.
pub(crate) async fn run_tool<W>(
    ctx: &WorkflowContext<W>,
    cancellation: &WorkflowCancellationToken,
    queue: Option<&str>,
    heartbeat_timeout: Duration,
    call: &PlannedCall,
    request: RunToolRequest,
) -> Result<RunToolResult> {
    let timeout = Duration::from_millis(u64::from(call.timeout_ms));
    let options = ActivityOptions::with_start_to_close_timeout(timeout + ATTEMPT_GRACE)
        .activity_id(call.execution_id.clone())
        .maybe_task_queue(queue.map(str::to_owned))
        .heartbeat_timeout(heartbeat_timeout)
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
    let result = readable(
        ctx,
        ctx.execute_activity(AgentActivities::tool_execution, request, options),
    )
    .await;
    result.map_err(|error| call_error(&error))
}

/// Runs a short tool as a local activity. An ordinary activity makes the further attempts. A cancel of the turn does
/// not cancel the local activity, because no cancel reaches the run meanwhile.
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
    let result = readable(
        ctx,
        ctx.execute_local_activity(AgentActivities::tool_execution, request.clone(), options),
    )
    .await;
    match &result {
        Err(error) if reason_for_a_longer_try(error).is_some() => {
            let silence = HEARTBEAT_TIMEOUT;
            run_tool(ctx, cancellation, queue, silence, call, request).await
        }
        _ => result.map_err(|error| call_error(&error)),
    }
}

/// Announces the cancel of an agent execution, so that the activities ask the engine at once instead of at the next
/// heartbeat. The announcement has one attempt, and its failure is ignored, because the next heartbeat brings the
/// cancel.
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

/// Returns the options of a save or load as an ordinary activity, which also waits through a long outage of the store.
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

/// Returns the reason for calling an ordinary activity; `None` when the activity reported a permanent failure.
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

/// Returns the meaning of a failed store activity for the turn. A failure without an error of the application means
/// that the activity waited for the store in vain.
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

/// Returns the meaning of a failed activity for the turn.
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
