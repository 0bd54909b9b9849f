//! The wire of Anthropic's messages.
//!
//! - [`request`]: the body of a request, with the settings of [`thinking`] and the facts of [`models`]
//! - [`reply`]: the events of a reply, whose content [`blocks`] reads

mod blocks;
mod models;
pub(crate) mod reply;
pub(crate) mod request;
#[cfg(test)]
mod tests;
mod thinking;
