//! The policy for destinations of tools. Only this module decides where the HTTP requests of tools may go.
//!
//! A request may go to the public internet and to destinations that the operator allows. The parsed or resolved
//! address decides, not the spelling of the URL: odd spellings (0x7f.1, 2130706433, a trailing dot) are normalised
//! first. The connection goes to the checked address, because the connection's own resolver makes the check. A second
//! look-up never happens, so DNS rebinding is impossible. Every redirect passes the same check.
//!
//! - `addresses`: public addresses, and networks in an operator's notation
//! - `policy`: the check of a URL and of an address
//! - `client`: the HTTP client that obeys the policy
//! - `signature`: the caller of a request, and the proof

mod addresses;
mod client;
mod policy;
mod signature;
#[cfg(test)]
mod tests;

pub use client::{Egress, EgressError, Incoming, Outgoing};
pub use policy::{EgressPolicy, Refused};
pub use signature::{Signer, SigningKey};
