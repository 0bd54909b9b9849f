//! The gateway's part of the audit trail: entries about callers' actions. See `docs/operate/audit.md`.
//!
//! - `trail`: makes entries and writes them
//! - `reads`: entries about reads of admins, one for equal reads in ten minutes
//! - `source`: the address and id of a request
//! - `refusals`: entries about refused credentials, with a limit per minute
//!
//! Must not be here: texts of conversations, secrets, and reads of a caller's own conversations.

mod reads;
mod refusals;
mod source;
mod trail;

pub use self::source::Source;
pub(crate) use self::{
    refusals::Refusals,
    trail::{Audit, Doer, WithDetails},
};
