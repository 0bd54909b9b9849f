//! Behaviour that could differ between the backends: the order of events, what is paid and done once, isolation.

mod cost;
pub(crate) mod crash;
mod inbox;
pub(crate) mod isolation;
mod races;
pub(crate) mod resume;
mod tool_crash;
pub(crate) mod turn;
