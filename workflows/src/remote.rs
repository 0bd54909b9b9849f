//! Remote tools: tools on the operator's own workers, in the language of any Temporal SDK. This module claims a
//! tool, calls the tool's activity by name, and interprets the end (invariant 6, done once).
//!
//! The result of the activity travels by value, through the history. The remote worker may send a large result to the
//! gateway instead; the first stored end wins.

use std::time::Duration;

use everturn_proto::{
    RemoteCall,
    limits::TOOL_ATTEMPTS,
    turn::{
        PlannedCall, RecordRemoteToolRequest, RemoteTool, RemoteToolResult,
        record_remote_tool_request::End,
    },
    words::{Effect, PayloadRefusal, remote_failure},
};
use temporalio_common::{
    ActivityDefinition,
    data_converters::RawValue,
    error::{IncomingError, TimeoutType},
};
use temporalio_workflow::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, RetryPolicy,
    WaitConditionOptions, WorkflowCancellationToken,
};

use crate::{
    AgentExecution,
    calls::{self, CallError},
    refused::{fail_task, readable},
    tools::Ran,
    turn::Turn,
};

/// An activity of another worker, by its name. The result keeps the encoding of the other worker's SDK.
struct RemoteActivity(String);

impl ActivityDefinition for RemoteActivity {
    type Input = RemoteCall;
    type Output = RawValue;

    fn name(&self) -> &str {
        &self.0
    }
}

impl Turn<'_> {
    /// Claims the tool, runs its activity and records the end.
    pub(crate) async fn run_remote(&self, call: &PlannedCall) -> Result<Ran, CallError> {
        let request = self.tool_request(call);
        let claimed = calls::claim_remote_tool(self.ctx, request.clone()).await?;
        let (Some(input), Some(remote)) = (claimed.input, &call.remote) else {
            return Ok(Ran::Recorded);
        };
        let input = RemoteCall {
            input,
            headers: claimed.headers,
        };
        let may_run_again = Effect::from(input.input.effect.as_str()).may_run_again();
        let begun = self.ctx.workflow_time();
        let ran = self.call_remote(call, remote, input, may_run_again).await;
        let end = match ran {
            Ok(result) => match self.refusal(&result).await {
                Some(refusal) => End::Failed(format!("The tool ran. {}", refusal.text())),
                None => checked(encoded(result), remote),
            },
            // The end of the turn observes this call.
            Err(error) if error.as_cancelled().is_some() && self.cancellation.is_cancelled() => {
                return Err(CallError::Cancelled);
            }
            Err(error) => match meaning(call, remote, &error) {
                Meaning::Unknown(message) if !may_run_again => End::Unknown(message),
                Meaning::Known(message) | Meaning::Unknown(message) => End::Failed(message),
            },
        };
        let took = begun
            .zip(self.ctx.workflow_time())
            .and_then(|(begun, ended)| ended.duration_since(begun).ok());
        let duration_ms = u32::try_from(took.unwrap_or_default().as_millis()).unwrap_or(u32::MAX);
        let record = RecordRemoteToolRequest {
            tool: Some(request),
            duration_ms,
            end: Some(end),
        };
        self.record(record).await
    }

    /// Records a result while few other results are being recorded, because each record may carry its result through
    /// the engine a second time.
    async fn record(&self, record: RecordRemoteToolRequest) -> Result<Ran, CallError> {
        let may_record = |state: &AgentExecution| state.step_calls.may_record();
        while !self.ctx.state(may_record) {
            // The tool has run, so its effect is recorded even when the turn is cancelled.
            let options = WaitConditionOptions::builder()
                .cancellation_token(WorkflowCancellationToken::new())
                .build();
            let waited = self.ctx.wait_condition_with_options(may_record, options);
            waited.await.map_err(|_cancelled| CallError::Cancelled)?;
        }
        self.ctx.state_mut(|state| state.step_calls.begin_record());
        let recorded = calls::record_remote_tool(self.ctx, record).await;
        self.ctx.state_mut(|state| state.step_calls.end_record());
        recorded.map(Ran::from)
    }

    /// Runs the tool's activity. Sends a cancel to the activity, and does not wait for its end: an activity without
    /// heartbeats would never learn of the cancel, and the turn would wait in vain.
    async fn call_remote(
        &self,
        call: &PlannedCall,
        remote: &RemoteTool,
        input: RemoteCall,
        may_run_again: bool,
    ) -> Result<RawValue, ActivityExecutionError> {
        let activity = RemoteActivity(remote.activity_type.clone());
        let options = ActivityOptions::with_start_to_close_timeout(milliseconds(call.timeout_ms))
            .activity_id(call.execution_id.clone())
            .task_queue(remote.task_queue.clone())
            .schedule_to_start_timeout(milliseconds(remote.start_timeout_ms))
            .maybe_heartbeat_timeout(remote.heartbeat_timeout_ms.map(milliseconds))
            .cancellation_type(ActivityCancellationType::TryCancel)
            .cancellation_token(self.cancellation.clone())
            .retry_policy(
                RetryPolicy::builder()
                    .initial_interval(Duration::from_secs(1))
                    .maximum_interval(Duration::from_secs(10))
                    .maximum_attempts(if may_run_again { TOOL_ATTEMPTS } else { 1 })
                    .build(),
            )
            .summary(call.tool_name.clone())
            .build();
        let ran = self.ctx.execute_activity(activity, input, options);
        readable(self.ctx, ran).await
    }

    /// Returns why the turn must not take a result. Without the key, the function fails the workflow task and never
    /// returns.
    async fn refusal(&self, result: &RawValue) -> Option<PayloadRefusal> {
        let payload = result.payloads.first()?;
        let refusal = self.ctx.state(|state| state.refusal_of_result(payload))?;
        if refusal == PayloadRefusal::NoKey {
            match fail_task(self.ctx, refusal.text()).await {}
        }
        Some(refusal)
    }
}

/// The meaning of an activity's end for its tool, with a sentence for the model.
enum Meaning {
    /// The tool failed, or was never called.
    Known(String),
    /// The tool may have had its effect.
    Unknown(String),
}

fn meaning(call: &PlannedCall, remote: &RemoteTool, error: &ActivityExecutionError) -> Meaning {
    match error.reason() {
        Some(IncomingError::Application(failure)) => {
            let message = failure.source_error().to_string();
            match failure.type_name() {
                Some(remote_failure::OUTCOME_UNKNOWN | remote_failure::WORKER_SHUTDOWN) => {
                    Meaning::Unknown(message)
                }
                _ => Meaning::Known(message),
            }
        }
        Some(IncomingError::Timeout(timeout))
            if timeout.timeout_type() == TimeoutType::ScheduleToStart =>
        {
            Meaning::Known(format!(
                "No worker took the call within {} s. The operator must run a worker on task queue `{}` with activity `{}`.",
                remote.start_timeout_ms / 1000,
                remote.task_queue,
                remote.activity_type
            ))
        }
        Some(IncomingError::Timeout(_)) => Meaning::Unknown(format!(
            "The tool did not finish within {} s, or its worker was lost.",
            call.timeout_ms / 1000
        )),
        _ => Meaning::Unknown(format!(
            "The tool's activity ended without a result: {error}."
        )),
    }
}

/// Returns the end of a tool with this result: a failure when the result is too large.
fn checked(result: RemoteToolResult, remote: &RemoteTool) -> End {
    let bytes = result.data.len();
    match remote.max_result_bytes {
        Some(most) if bytes > most as usize => End::Failed(format!(
            "The tool ran, but its result has {bytes} bytes; the limit is {most}. Ask the tool for less. The operator \
             may raise the tool's `max_result_bytes`."
        )),
        _ => End::Result(result),
    }
}

fn encoded(result: RawValue) -> RemoteToolResult {
    let Some(payload) = result.payloads.into_iter().next() else {
        return RemoteToolResult::default();
    };
    let encoding = payload
        .metadata
        .get("encoding")
        .map(|encoding| String::from_utf8_lossy(encoding).into_owned());
    RemoteToolResult {
        encoding: encoding.unwrap_or_default(),
        data: payload.data,
    }
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
}
