//! Has what an activity ends with encrypted for its tenant.
//!
//! The engine tells each activity the fairness key of its workflow, which is the label of its tenant. Local activities
//! have none: what they give back is encrypted for the tenant that it names, or for the installation.

use everturn_codec::tenant;
use temporalio_sdk::interceptors::{
    ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next,
};

/// Notes for whom each activity runs, where anything is encrypted.
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
            // The SDK calls this in the task of the activity, in which it also encrypts the activity's end.
            tenant::of_this_task(label);
        }
        next.run(input)
    }
}
