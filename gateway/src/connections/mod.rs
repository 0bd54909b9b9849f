//! Connections: what happens before a request is whole, and before it is known who sends it.
//!
//! - [`listener`]: the socket; cuts readers that stall
//! - `places`: how many connections there may be, and which one gives way
//! - `body`: request bodies that come too slowly, and places that a response holds
//! - `client`: the address of who is asking, behind proxies that are trusted
//!
//! Everything here bounds what somebody without a credential can take (invariant 10, nothing grows without a bound).
//!
//! Must not be here: endpoints, and who may do what.

pub(crate) mod body;
pub(crate) mod client;
pub mod listener;
pub(crate) mod places;
