//! What a gateway writes to the audit trail of what callers do. See `docs/operate/audit.md`.
//!
//! - `trail`: makes entries and writes them
//! - `source`: where a request comes from
//! - `refusals`: credentials that are refused, of which only so many are written
//!
//! What must not be here: texts of conversations, secrets, and what only reads.

mod refusals;
mod source;
mod trail;

pub use self::source::Source;
pub(crate) use self::{
    refusals::Refusals,
    trail::{Audit, Doer, WithDetails},
};
