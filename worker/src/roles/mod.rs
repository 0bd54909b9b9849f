//! The roles of a process. Each role takes its connections and a shutdown token, and runs until the token is
//! cancelled.

pub mod all;
pub mod audit;
pub mod codec_key;
pub mod config;
pub mod failures;
mod for_tenants;
pub mod gateway;
pub mod health;
pub mod init;
pub(crate) mod isolation;
pub mod keys;
mod lease;
mod left_out;
pub mod migrate;
pub mod replay;
pub mod retention;
mod sdk_workers;
pub mod tools;
mod versions;
pub mod worker;
