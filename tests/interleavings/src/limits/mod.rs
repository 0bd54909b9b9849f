//! The limits of tenants and of their owners, in one gateway.

#[path = "../../../../gateway/src/limits/memory/mod.rs"]
#[allow(dead_code)]
pub(crate) mod memory;
mod memory_checks;
#[path = "../../../../gateway/src/limits/reached.rs"]
#[allow(dead_code)]
mod reached;
mod request_checks;
#[path = "../../../../gateway/src/limits/requests.rs"]
#[allow(dead_code)]
mod requests;
mod stream_checks;
#[path = "../../../../gateway/src/limits/streams.rs"]
#[allow(dead_code)]
mod streams;

pub use self::{memory_checks::*, request_checks::*, stream_checks::*};
