//! The wire of the chat completions: OpenAI, Azure, and the many servers compatible with them.

pub(super) mod reply;
pub(super) mod request;
#[cfg(test)]
mod tests;
