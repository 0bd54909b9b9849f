//! End-to-end tests: real processes on the real Temporal server, with a scripted model.
//!
//! They are one binary, so that all of them share one Temporal server.

#![allow(clippy::unwrap_used)]

mod alerts;
mod api;
mod approvals;
mod approvals_survive;
mod background;
mod backups;
mod bad_input;
mod cancels;
mod cli;
mod client_tools;
mod clocks;
mod conversations;
mod cost;
mod crash;
mod cut_replies;
mod dev;
mod devices;
mod edges;
mod elsewhere;
mod every_exit;
mod fairness;
mod faults;
mod gateway_crash;
mod health;
mod http_tools;
mod inline_tools;
mod isolation;
mod keys;
mod long_steps;
mod lost_workers;
mod mcp;
mod operations;
mod own_tools;
mod parallel;
mod pools;
mod printed;
mod races;
mod readers;
mod readme;
mod reconciler;
mod redis_back;
mod remote;
mod renewed;
mod repeats;
mod replay;
mod restored;
mod resume;
mod reused_ids;
mod rollout;
mod skills;
mod soak;
mod subagents;
mod tool_crash;
mod tools_cli;
mod traces;
mod turn;
mod two_builds;
mod versions;
mod wrong_setup;
mod young_runs;
mod zombies;
