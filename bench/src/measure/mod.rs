//! What is measured and how it is told: processor time by process, what the engine and the database were asked, and the
//! report.
//!
//! Must not be here: what is run (`cases`, `world`).

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
