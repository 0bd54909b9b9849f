//! The input of a model call, made from stored messages. A worker makes the input before the call, and a gateway makes
//! the input of a past call again, so both use the functions here. Pure.
//!
//! - `hook_results`: the results of the hooks before a turn, in front of the turn's task
//! - `long_results`: the results of tools, shortened for the window of a model
//! - `requests`: the texts by which Everturn itself asks a model for a summary
//! - `past`: the input of a past call
//! - `retries`: the steps of failed turns, as steps of their retries
//!
//! Must not be here: the decision about the content of a call (`everturn-activities`), and the form of a request on the
//! wire of a provider (`everturn-models`).

mod hook_results;
mod long_results;
mod past;
mod requests;
mod retries;

pub use self::{
    hook_results::{has_hook_results, insert_hook_results},
    long_results::{DEFAULT_WINDOW, shorten_results},
    past::characters,
    requests::{LAST_WORDS, SUMMARIZE},
    retries::join_retries,
};
