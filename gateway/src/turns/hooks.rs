//! Starts the workflow of the hooks after a turn, when the workflow of the conversation was lost before the start.

use std::time::Duration;

use everturn_proto::{ids, limits::AFTER_TURN_LIMIT_S};
use everturn_store::DueHooks;
use everturn_workflows::{AfterTurn, TASK_TIMEOUT};
use temporalio_client::{
    WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowStartOptions,
    errors::WorkflowStartError,
};
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;

use super::{
    inputs::hooks_input,
    port::{HooksOutcome, TurnError},
    temporal::{TemporalTurns, priority_of, unavailable},
};

impl TemporalTurns {
    /// Starts the workflow under the id that the conversation's workflow also uses. The engine refuses the start while it
    /// knows a workflow with this id, running or ended.
    pub(super) async fn start_hooks_once(
        &self,
        hooks: &DueHooks,
    ) -> Result<HooksOutcome, TurnError> {
        let id = ids::after_turn_workflow_id(&hooks.conversation_id, &hooks.agent_execution_id);
        let options = WorkflowStartOptions::new(self.task_queue(), id.clone())
            .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::Fail)
            .execution_timeout(Duration::from_secs(u64::from(AFTER_TURN_LIMIT_S)))
            .task_timeout(TASK_TIMEOUT)
            .priority(priority_of(&hooks.tenant_id))
            .static_summary("after the turn".to_owned())
            .rpc_options(self.rpc_options())
            .build();
        let call = self
            .client()
            .start_workflow(AfterTurn::run, hooks_input(hooks).into(), options);
        match self.within(call).await? {
            Ok(_) => Ok(HooksOutcome::Started),
            Err(WorkflowStartError::AlreadyStarted { .. }) => self.found_hooks(&id).await,
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Returns whether the found workflow runs. A workflow that the engine's retention has just removed has ended.
    async fn found_hooks(&self, workflow_id: &str) -> Result<HooksOutcome, TurnError> {
        let described = self.described(workflow_id).await?;
        let info = described.and_then(|described| described.workflow_execution_info);
        let is_running = info.is_some_and(|info| info.status() == WorkflowExecutionStatus::Running);
        Ok(if is_running {
            HooksOutcome::Runs
        } else {
            HooksOutcome::Ended
        })
    }
}
