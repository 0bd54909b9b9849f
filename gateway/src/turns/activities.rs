//! Restarts the activities of dead or ended workers: the port, and its implementation with Temporal.

use std::time::Duration;

use async_trait::async_trait;
use everturn_proto::{ids, words::FailureCode};
use everturn_store::{RunningAgentExecution, WorkerId};
use temporalio_client::{
    ActivityIdentifier,
    errors::AsyncActivityError,
    tonic::{Code, Request},
};
use temporalio_common::{
    error::ApplicationFailure,
    protos::temporal::api::{
        common::v1::WorkflowExecution,
        enums::v1::PendingActivityState,
        workflow::v1::PendingActivityInfo,
        workflowservice::v1::{
            DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse,
            ResetStickyTaskQueueRequest,
        },
    },
};

use super::{
    port::TurnError,
    temporal::{TemporalTurns, unavailable},
};

/// The retry delay of a restarted activity. With the delay, the engine gives the activity to another worker at once.
/// Without a delay in the failure, the engine takes the delay of the retry policy.
const RETRY_AT_ONCE: Duration = Duration::from_millis(1);

/// Restarts activities in the engine, after the caller has found a worker dead or ended.
#[async_trait]
pub trait ActivityRestarter: Send + Sync {
    /// Restarts those activities of an agent execution that one of `workers` has begun and not ended. Returns the
    /// number of restarted activities.
    async fn restart_activities(
        &self,
        execution: &RunningAgentExecution,
        workers: &[WorkerId],
    ) -> Result<u32, TurnError>;
}

#[async_trait]
impl ActivityRestarter for TemporalTurns {
    async fn restart_activities(
        &self,
        execution: &RunningAgentExecution,
        workers: &[WorkerId],
    ) -> Result<u32, TurnError> {
        let Some(described) = self.described(&workflow_id(execution)).await? else {
            return Ok(0);
        };
        let run = described
            .workflow_execution_info
            .and_then(|info| info.execution)
            .unwrap_or_default();
        // The engine's view decides, and not the claims in the store. The worker may have begun an activity without a
        // claim, or ended an activity without a report. Another worker may have begun anew an activity that the dead
        // worker had claimed.
        let pending = described.pending_activities;
        let theirs: Vec<_> = pending
            .into_iter()
            .filter(|it| has_begun(it) && is_of(workers, it))
            .collect();
        if theirs.is_empty() {
            return Ok(0);
        }
        // The run leaves the sticky queue before the failure, because the next workflow task may come as soon as the
        // activity has ended.
        self.leave_sticky_queue(&run).await;
        let mut restarted = 0;
        for activity in theirs {
            restarted += u32::from(self.restart(&run, &activity).await?);
        }
        Ok(restarted)
    }
}

impl TemporalTurns {
    /// Describes the latest run of a workflow; `None` without a run.
    pub(super) async fn described(
        &self,
        workflow_id: &str,
    ) -> Result<Option<DescribeWorkflowExecutionResponse>, TurnError> {
        let request = DescribeWorkflowExecutionRequest {
            namespace: self.namespace(),
            execution: Some(WorkflowExecution {
                workflow_id: workflow_id.to_owned(),
                run_id: String::new(),
            }),
        };
        let mut service = self.client().connection().workflow_service();
        let call = service.describe_workflow_execution(Request::new(request));
        match self.within(call).await? {
            Ok(described) => Ok(Some(described.into_inner())),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(unavailable(status)),
        }
    }

    /// Takes the run from the worker with the run in its cache, which may be the dead worker. Otherwise the next
    /// workflow task would wait for the dead worker (docs/engine.md, a dead worker's sticky queue). If the call fails,
    /// the workflow task waits.
    async fn leave_sticky_queue(&self, run: &WorkflowExecution) {
        let request = ResetStickyTaskQueueRequest {
            namespace: self.namespace(),
            execution: Some(run.clone()),
        };
        let mut service = self.client().connection().workflow_service();
        let call = service.reset_sticky_task_queue(Request::new(request));
        match self.within(call).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a turn waits for the previous worker"),
            Err(error) => tracing::debug!(%error, "a turn waits for the previous worker"),
        }
    }

    /// Ends the attempt of an activity, so the next attempt begins. Returns false if the attempt has already ended.
    async fn restart(
        &self,
        run: &WorkflowExecution,
        activity: &PendingActivityInfo,
    ) -> Result<bool, TurnError> {
        let (workflow_id, run_id) = (&run.workflow_id, &run.run_id);
        let id = ActivityIdentifier::by_id_workflow(workflow_id, run_id, &activity.activity_id);
        let handle = self.client().get_async_activity_handle(id);
        let ended = if activity.state() == PendingActivityState::CancelRequested {
            // A cancelled turn waits only for the activity, so the activity needs no new attempt.
            let cancelled = handle.report_cancelation::<()>(None, self.rpc_options());
            self.within(cancelled).await?
        } else {
            let failed = handle.fail::<_, ()>(worker_lost(activity), None, self.rpc_options());
            self.within(failed).await?
        };
        match ended {
            Ok(()) => Ok(true),
            Err(AsyncActivityError::NotFound(_)) => Ok(false),
            Err(error) => Err(unavailable(error)),
        }
    }
}

fn workflow_id(execution: &RunningAgentExecution) -> String {
    let conversation_id = &execution.conversation_id;
    execution.sub_agent_call.as_deref().map_or_else(
        || ids::workflow_id(conversation_id),
        |call| ids::sub_agent_workflow_id(conversation_id, call),
    )
}

/// Returns true when a worker has begun the activity and has not ended it. The state decides, because an activity that
/// waits for its next attempt still names its last worker.
fn has_begun(activity: &PendingActivityInfo) -> bool {
    let state = activity.state();
    state == PendingActivityState::Started || state == PendingActivityState::CancelRequested
}

fn is_of(workers: &[WorkerId], activity: &PendingActivityInfo) -> bool {
    let identity = &activity.last_worker_identity;
    workers.iter().any(|worker| worker.is_called(identity))
}

/// Makes the failure of an attempt with a dead worker.
fn worker_lost(activity: &PendingActivityInfo) -> ApplicationFailure {
    let identity = &activity.last_worker_identity;
    let message =
        format!("The worker {identity} gives no sign of life. Another worker repeats the attempt.");
    ApplicationFailure::builder(message)
        .type_name(FailureCode::WorkerLost.into())
        .next_retry_delay(RETRY_AT_ONCE)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(state: PendingActivityState, identity: &str) -> PendingActivityInfo {
        PendingActivityInfo {
            state: state.into(),
            last_worker_identity: identity.to_owned(),
            ..PendingActivityInfo::default()
        }
    }

    #[test]
    fn only_what_a_dead_worker_has_begun_begins_again() {
        let (dead, lives) = (WorkerId::random(), WorkerId::random());
        let chosen = |state, identity: &str| {
            let activity = activity(state, identity);
            has_begun(&activity) && is_of(std::slice::from_ref(&dead), &activity)
        };
        let identity = dead.identity("1@host");
        assert!(chosen(PendingActivityState::Started, &identity));
        assert!(chosen(PendingActivityState::CancelRequested, &identity));
        assert!(!chosen(PendingActivityState::Scheduled, &identity));
        let lives = lives.identity("1@host");
        assert!(!chosen(PendingActivityState::Started, &lives));
        let of_an_older_release = "1@host";
        assert!(!chosen(PendingActivityState::Started, of_an_older_release));
    }

    #[test]
    fn a_sub_agent_has_a_workflow_of_its_own() {
        let execution = |sub_agent_call: Option<&str>| RunningAgentExecution {
            conversation_id: "c".to_owned(),
            sub_agent_call: sub_agent_call.map(str::to_owned),
            is_held: true,
        };
        assert_eq!(workflow_id(&execution(None)), ids::workflow_id("c"));
        assert_eq!(
            workflow_id(&execution(Some("exec_1"))),
            ids::sub_agent_workflow_id("c", "exec_1")
        );
    }
}
