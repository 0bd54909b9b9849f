//! The wire of Gemini: `streamGenerateContent` of Google AI Studio and of Vertex AI.

pub(super) mod reply;
pub(super) mod request;
#[cfg(test)]
mod tests;
mod thinking;
