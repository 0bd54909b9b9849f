//! The gateway's part of the audit trail: entries about callers' actions. See `docs/operate/audit.md`.
//!
//! - `trail`: makes entries and writes them
//! - `source`: the address and id of a request
//! - `refusals`: entries about refused credentials, with a limit per minute
//!
//! Must not be here: texts of conversations, secrets, and actions that only read.

mod refusals;
mod source;
mod trail;

pub use self::source::Source;
pub(crate) use self::{
    refusals::Refusals,
    trail::{Audit, Doer, WithDetails},
};
