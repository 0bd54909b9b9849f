//! The stream: texts while they are being written, the news that events were saved, and the news of cancels.
//!
//! - [`api`]: the traits, [`StreamWriter`] and [`StreamReader`], and what travels through them; [`CancelNews`], by which
//!   workers hear at once of a cancel
//! - [`in_process`]: the back end of a single process
//! - [`redis`]: the back end of many processes
//! - [`shared_counts`]: the trait [`SharedCounts`], by which gateways keep limits together
//! - [`text_writer`]: joins a model's pieces into few publications
//!
//! What is here may be lost at any time without harm: the store has everything, and a reader that missed something asks
//! it. Must not be here: anything persisted, anything about models.

pub mod api;
pub mod in_process;
pub mod redis;
pub mod shared_counts;
pub mod text_writer;

pub use self::redis::{RedisPeer, RedisStream, RedisStreamOptions, redis_peer};
pub use api::*;
pub use in_process::{InProcessStream, StreamOptions};
pub use shared_counts::{Counted, Exceeded, Held, Holder, SharedCounts, Spent};
pub use text_writer::TextWriter;
