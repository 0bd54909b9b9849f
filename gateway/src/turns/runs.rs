//! Deletes the engine's data about a conversation: the runs of the conversation's workflow, sub-agents and hooks.
//!
//! The engine finds runs in a list, and the list shows a run only some time after the run's start. Therefore the
//! gateway reads the list again later. A client may make the conversation anew in the meantime. Therefore the gateway
//! deletes only runs that started before the end of the removed conversation's last run, by the engine's own clock.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use chrono::{DateTime, SecondsFormat, Utc};
use everturn_proto::ids;
use futures::TryStreamExt;
use temporalio_client::{
    WorkflowListOptions,
    tonic::{Code, Request},
};
use temporalio_common::protos::temporal::api::{
    common::v1::WorkflowExecution, workflowservice::v1::DeleteWorkflowExecutionRequest,
};
use tokio::sync::Semaphore;

use super::{
    port::TurnError,
    temporal::{TemporalTurns, unavailable},
};

/// The most deleted runs per read of the list. The next read continues with the rest.
const RUNS: usize = 200;
/// The pauses before later reads of the list, after the removal of a conversation. The list lags by milliseconds to
/// seconds.
const LOOKS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(2),
];
/// Permits for conversations with later reads of the list. Beyond the limit, the engine's own retention removes the
/// remaining runs.
static LOOKED_FOR: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(256)));

impl TemporalTurns {
    /// Deletes the runs of a conversation whose workflow has ended. A background task deletes the runs that the engine
    /// does not list yet.
    pub(super) async fn delete_all_runs(&self, conversation_id: &str) -> Result<(), TurnError> {
        let Some((newest, last)) = self.newest_run(conversation_id).await? else {
            return Ok(());
        };
        self.delete_run(newest).await?;
        self.delete_listed(conversation_id, last).await?;
        let Ok(permit) = Arc::clone(&LOOKED_FOR).try_acquire_owned() else {
            tracing::info!(
                conversation_id,
                "the engine's retention may have to delete the workflow runs of a deleted conversation"
            );
            return Ok(());
        };
        let (turns, conversation_id) = (self.clone(), conversation_id.to_owned());
        tokio::spawn(async move {
            let _permit = permit;
            for pause in LOOKS {
                tokio::time::sleep(pause).await;
                if let Err(error) = turns.delete_listed(&conversation_id, last).await {
                    tracing::warn!(%error, conversation_id, "workflow runs of a deleted conversation are not deleted yet");
                }
            }
        });
        Ok(())
    }

    /// Returns the newest run of the conversation's workflow, and the latest start time of a run to delete; `None` if
    /// the engine knows no run.
    async fn newest_run(
        &self,
        conversation_id: &str,
    ) -> Result<Option<(WorkflowExecution, DateTime<Utc>)>, TurnError> {
        let Some(described) = self.describe(conversation_id).await? else {
            return Ok(None);
        };
        // A run that is still open began with messages accepted in the meantime, and the conversation is not removed
        // yet.
        let last = described
            .close_time()
            .or_else(|| described.start_time())
            .unwrap_or_else(SystemTime::now);
        let run = WorkflowExecution {
            workflow_id: ids::workflow_id(conversation_id),
            run_id: described.run_id().to_owned(),
        };
        Ok(Some((run, last.into())))
    }

    async fn delete_listed(
        &self,
        conversation_id: &str,
        last: DateTime<Utc>,
    ) -> Result<(), TurnError> {
        let options = WorkflowListOptions::builder().limit(RUNS).build();
        let query = query(conversation_id, last);
        let listed = self.client().list_workflows(query, options);
        let listed: Vec<_> = self
            .within(listed.try_collect())
            .await?
            .map_err(unavailable)?;
        for run in listed {
            let run = WorkflowExecution {
                workflow_id: run.id().to_owned(),
                run_id: run.run_id().to_owned(),
            };
            self.delete_run(run).await?;
        }
        Ok(())
    }

    /// Deletes a run in the engine. The engine also ends an open run.
    async fn delete_run(&self, run: WorkflowExecution) -> Result<(), TurnError> {
        let request = DeleteWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_execution: Some(run),
        };
        let mut service = self.client().connection().workflow_service();
        let call = service.delete_workflow_execution(Request::new(request));
        match self.within(call).await? {
            Err(status) if status.code() != Code::NotFound => Err(unavailable(status)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Returns the list query for the workflows of a conversation. The workflow ids of sub-agents and hooks begin with the
/// conversation's workflow id.
fn query(conversation_id: &str, last: DateTime<Utc>) -> String {
    let id = ids::workflow_id(conversation_id).replace('\'', "''");
    let last = last.to_rfc3339_opts(SecondsFormat::Nanos, true);
    format!("(WorkflowId = '{id}' OR WorkflowId STARTS_WITH '{id}/') AND StartTime <= '{last}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_workflows_of_one_conversation_are_asked_for() {
        let query = |id| query(id, DateTime::UNIX_EPOCH);
        assert_eq!(
            query("a"),
            "(WorkflowId = 'conversation-a' OR WorkflowId STARTS_WITH 'conversation-a/') AND StartTime <= \
             '1970-01-01T00:00:00.000000000Z'"
        );
        assert!(query("a' OR '1'='1").contains("'conversation-a'' OR ''1''=''1'"));
    }
}
