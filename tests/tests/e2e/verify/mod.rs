//! Long tests for `make verify`. CONTRIBUTING.md, "Where a test belongs", gives the reason for each.

mod alerts;
mod backups;
mod chaos;
mod crash;
mod model_outage;
mod soak;
mod two_builds;
