//! Behaviour of PostgreSQL, Redis, or several processes of a role. These tests always run on the production backends.

mod background;
pub(crate) mod backups;
mod canary;
mod cancels;
mod codec;
mod devices;
mod fallback;
pub(crate) mod faults;
mod gateway_crash;
mod list_stream;
mod lost_workers;
mod operations;
mod people;
mod readers;
mod redis_back;
mod restored;
mod resume;
mod reused_ids;
mod rollout;
mod shared_limits;
mod terminal;
mod transport;
mod wrong_setup;
