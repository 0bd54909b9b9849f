//! Encrypts the result of an activity with its tenant's key.
//!
//! Temporal passes each activity the fairness key of its workflow, which is the label of the tenant. Local activities
//! have no fairness key. Their result is encrypted for the tenant that it names, or for the installation.

use everturn_codec::tenant;
use temporalio_sdk::interceptors::{
    ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next,
};

/// Records the tenant of each activity, if a codec is configured.
#[derive(Clone, Copy)]
pub(super) struct ForTenants {
    is_on: bool,
}

impl ForTenants {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on }
    }
}

impl ActivityInboundInterceptor for ForTenants {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let priority = &input.activity_info().priority;
        if let Some(label) = priority.fairness_key.as_deref().filter(|_| self.is_on) {
            // The SDK calls the interceptor in the activity's task, and encrypts the activity's result in the same
            // task.
            tenant::of_this_task(label);
        }
        next.run(input)
    }
}
