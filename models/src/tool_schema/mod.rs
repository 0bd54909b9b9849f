//! Adapts the tools of a request to the provider that gets them, and maps the model's calls back.
//!
//! - `adapted`: one adapted schema, or the reason why a tool is left out
//! - `flat`: replaces references, and joins the schemas of `allOf`
//! - `maker`: makes the adapted schema; `union`, `object` and `keywords` are its parts
//! - `renamed`: property names that the provider refuses, and the way back; `keys`: the keys in the text of arguments
//! - `offer`: the tools of a request, with the history and the reply
//!
//! An adapted schema allows at least what the tool's schema allows, because the runtime checks the arguments of a call
//! against the tool's own schema. Must not be here: the form of one wire.

mod adapted;
mod flat;
mod keys;
mod keywords;
mod maker;
mod object;
mod offer;
mod renamed;
#[cfg(test)]
mod tests;
mod union;

pub use adapted::{Unfit, unfit};
pub(crate) use offer::Offer;
