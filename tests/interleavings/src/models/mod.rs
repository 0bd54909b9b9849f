//! The gate of a provider.

mod checks;
#[path = "../../../../models/src/gate/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod gate;

pub use self::checks::*;
