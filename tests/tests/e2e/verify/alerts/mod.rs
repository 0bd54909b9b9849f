//! Each alert of the chart fires on the metrics of real processes that are in its condition, and no other alert does.
//!
//! - `watched`: the processes, and their metrics as time goes by
//! - `firing`: the alerts that fire on these
//! - `agents`, `models`, `turns`, `processes`, `stores`, `workers`, `gateways`: the conditions
//!
//! One alert is not here: EverturnTwoVersions. All binaries of a commit have one version. How each rule behaves close to its
//! threshold, and when it fires to the minute, is shown on series in `deploy/chart-test/conditions.yaml`.

mod agents;
mod firing;
mod gateways;
mod models;
mod processes;
mod stores;
mod turns;
mod watched;
mod workers;
