//! Connections, until a request is complete and its sender is known.
//!
//! - [`listener`]: the socket; cuts readers that stall
//! - `slots`: the slots of connections, and the connection that gives way when the slots are taken
//! - `body`: the time limit of request bodies, and the slot of a connection while a response is sent
//! - `client`: the address of the client, behind trusted proxies
//!
//! The module bounds the resources of clients without a credential (invariant 10, nothing grows without a bound).
//!
//! Must not be here: endpoints and permissions.

pub(crate) mod body;
pub(crate) mod client;
pub mod listener;
pub(crate) mod slots;
