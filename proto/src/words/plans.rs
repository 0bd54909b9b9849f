//! Words about work plans: how a step of one stands.

words! {
    /// How a step of a work plan stands.
    pub enum PlanStepStatus {
        /// It has not begun.
        Pending = "pending",
        /// The agent works on it.
        Running = "running",
        /// It is done.
        Completed = "completed",
        /// It could not be done.
        Failed = "failed",
    }
}
