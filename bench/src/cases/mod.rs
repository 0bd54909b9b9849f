//! The cases, one in each file. A case starts what it needs, and ends with a report.

pub(crate) mod cancel;
pub(crate) mod first_delta;
pub(crate) mod outage;
pub(crate) mod queue;
pub(crate) mod soak;
pub(crate) mod streams;
pub(crate) mod turn;
