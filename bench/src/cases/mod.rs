//! The benchmark cases, one per file. A case starts its own processes and servers, and returns a report.

pub(crate) mod append;
pub(crate) mod cancel;
pub(crate) mod delete;
pub(crate) mod fairness;
pub(crate) mod fanout;
pub(crate) mod first_delta;
pub(crate) mod hostile;
pub(crate) mod long;
pub(crate) mod outage;
pub(crate) mod queue;
pub(crate) mod recovery;
pub(crate) mod replay;
pub(crate) mod scale;
pub(crate) mod soak;
pub(crate) mod stream;
pub(crate) mod turn;
