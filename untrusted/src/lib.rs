//! Rules for the answers of models, tools and services, which may contain anything.
//!
//! - [`Secrets`]: removes the secrets of a request from its answer
//! - [`retry_after`]: the bounded wait that a server asks for
//! - [`Schema`]: checks a JSON value, and explains its problems to a model
//! - [`cut`]: a text of bounded length
//!
//! Must not be here: connections and requests (`everturn-models`, `everturn-tools`), and the meaning of an answer.

pub mod retry_after;
mod schema;
mod secrets;

pub use schema::Schema;
pub use secrets::Secrets;

/// Returns the text, cut after `max_chars`.
pub fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
