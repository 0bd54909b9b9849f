//! The stream carries texts that a model is still writing, and announces saved events and cancels.
//!
//! - [`api`]: the traits [`StreamWriter`] and [`StreamReader`] with their messages, and [`CancelNews`], by which a
//!   cancel reaches workers at once
//! - [`in_process`]: the back end for a single process
//! - [`redis`]: the back end for many processes
//! - [`shared_counts`]: the trait [`SharedCounts`], by which gateways apply limits together
//! - [`text_writer`]: joins a model's pieces into few publications
//!
//! The stream may lose its contents at any time without harm: the store has every event and every text, and a reader
//! that missed something asks the store. Must not be here: anything persisted, anything about models.

pub mod api;
pub mod in_process;
pub mod part;
pub mod redis;
pub mod shared_counts;
pub mod text_writer;

pub use self::redis::{RedisPeer, RedisStream, RedisStreamOptions, redis_peer};
pub use api::*;
pub use in_process::{InProcessStream, StreamOptions};
pub use part::MAX_SHOWN_CALLS;
pub use shared_counts::{Counted, Exceeded, Held, Holder, SharedCounts, Spent};
pub use text_writer::TextWriter;
