//! The tails of the lists of conversations.

mod checks;
#[path = "../../../../../gateway/src/live/lists/hub.rs"]
#[allow(dead_code, unreachable_pub)]
mod hub;
mod snapshot;

pub use self::checks::*;
