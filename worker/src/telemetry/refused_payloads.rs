//! Counts and logs the signals and updates that a workflow refuses because of their payloads.
//!
//! The workflow decides alone (`workflows/src/refused.rs`), and the interceptor asks the same question with the same
//! tenant. A replay counts nothing again. A workflow task that is done a second time counts a second time.

use std::{any::Any, cell::OnceCell};

use everturn_proto::{
    Lenient, ids,
    turn::{Cancel, ResolveApproval, Submit, ToolResultStored, TurnInput},
    words::PayloadRefusal,
};
use everturn_telemetry::turns;
use temporalio_sdk::{
    WorkflowContextView,
    workflow_interceptors::{
        HandleSignalInput, HandleSignalResult, InitializeWorkflowInput, InitializeWorkflowOutput,
        SyncWorkflowInterceptorContext, ValidateUpdateInput, ValidateUpdateResult,
        WorkflowInterceptor, WorkflowInterceptorConstructor, WorkflowInterceptorContext,
        WorkflowInterceptorFuture, WorkflowNext,
    },
};

/// Makes an interceptor for each run.
pub fn counts_refused_payloads() -> WorkflowInterceptorConstructor {
    WorkflowInterceptorConstructor::new(|_| Counts::default())
}

#[derive(Default)]
struct Counts {
    /// The label of the run's tenant; empty for a run with an unusable input, which takes no signals.
    label: OnceCell<String>,
}

impl Counts {
    /// Returns why the run refuses an input of the type.
    fn refusal<T: Any>(&self, input: Option<&Lenient<T>>) -> Option<PayloadRefusal> {
        input?.refusal(self.label.get()?)
    }

    fn refusal_of_signal(&self, input: &HandleSignalInput) -> Option<PayloadRefusal> {
        self.refusal::<Submit>(input.input_ref())
            .or_else(|| self.refusal::<Cancel>(input.input_ref()))
            .or_else(|| self.refusal::<ToolResultStored>(input.input_ref()))
            .or_else(|| self.refusal::<ResolveApproval>(input.input_ref()))
    }
}

impl WorkflowInterceptor for Counts {
    fn initialize_workflow(
        &self,
        _: WorkflowContextView,
        input: InitializeWorkflowInput,
        next: WorkflowNext<'_, InitializeWorkflowInput, InitializeWorkflowOutput>,
    ) -> InitializeWorkflowOutput {
        let turn = input.input_ref::<Lenient<TurnInput>>();
        if let Some(turn) = turn.and_then(|input| input.0.as_ref().ok()) {
            // The run has a single input.
            let _ = self.label.set(ids::fairness_key(turn.tenant()));
        }
        next.run(input)
    }

    fn handle_signal<'a>(
        &'a self,
        ctx: WorkflowInterceptorContext,
        input: HandleSignalInput,
        next: WorkflowNext<
            'a,
            HandleSignalInput,
            WorkflowInterceptorFuture<'a, HandleSignalResult>,
        >,
    ) -> WorkflowInterceptorFuture<'a, HandleSignalResult> {
        let refusal = self
            .refusal_of_signal(&input)
            .filter(|_| !ctx.is_replaying());
        if let Some(refusal) = refusal {
            tell(&refusal, ctx.workflow_id(), input.name(), "a signal");
        }
        next.run(input)
    }

    fn validate_update(
        &self,
        ctx: SyncWorkflowInterceptorContext,
        input: ValidateUpdateInput,
        next: WorkflowNext<'_, ValidateUpdateInput, ValidateUpdateResult>,
    ) -> ValidateUpdateResult {
        if let Some(refusal) = self.refusal::<ResolveApproval>(input.input_ref()) {
            tell(&refusal, ctx.workflow_id(), input.name(), "an update");
        }
        next.run(input)
    }
}

fn tell(refusal: &PayloadRefusal, workflow_id: &str, name: &str, what: &str) {
    turns::payload_refused(refusal.as_str());
    tracing::warn!(
        workflow_id,
        handler = name,
        reason = refusal.as_str(),
        "the workflow has dropped {what}. {}",
        refusal.text()
    );
}
