//! The servers that tests run on: real ones, started for the tests, to work with and to break. They end with the process
//! that started them.
//!
//! - [`postgres`], [`pgbouncer`], [`redis`]: PostgreSQL, PgBouncer and Redis from Debian's packages
//! - [`s3`]: a store that speaks S3, by versitygw
//! - [`temporal_cluster`]: the production Temporal server, on PostgreSQL
//! - [`temporal_cli`]: the `temporal` binary
//! - [`server`]: what all of them have in common: a process with a directory and a log of its own
//! - [`proxy`]: a TCP connection to a server, which holds back, loses or ends what is said
//! - [`round_trips`]: how often clients of PostgreSQL wait for it
//! - [`ports`]: ports that no other test gets
//! - [`wait`]: waiting on conditions, never on time
//!
//! Nothing here knows Everturn, so the tests of any crate may stand on it. The dev server of Temporal is a part of the
//! product, `everturn_worker::dev`, and is tested as such.

// A test that cannot set up its servers should stop with a message, not return it.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod account;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod redis;
pub mod round_trips;
pub mod s3;
pub mod server;
pub mod temporal_cli;
pub mod temporal_cluster;
pub mod wait;
