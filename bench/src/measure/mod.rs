//! Measurements and reports: processor time by role, counters of the engine and the database, latencies, and the
//! report.
//!
//! Must not be here: the measured cases (`cases`, `world`).

mod cpu;
mod database;
mod latency;
mod report;

pub(crate) use self::{
    cpu::{CpuTimes, Role},
    database::DatabaseCounts,
    latency::Latencies,
    report::{Report, Samples, float},
};
