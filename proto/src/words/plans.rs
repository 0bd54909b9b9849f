//! Words about work plans: the status of a plan step.

words! {
    /// The status of a step of a work plan.
    pub enum PlanStepStatus {
        /// The step has not begun.
        Pending = "pending",
        /// The agent works on the step.
        Running = "running",
        /// The step is done.
        Completed = "completed",
        /// The step failed.
        Failed = "failed",
    }
}
