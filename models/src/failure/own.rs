//! The errors that Everturn sees itself: a lost connection, a cut stream, a reply that is no answer.

use std::error::Error as StdError;

use everturn_proto::words::FailureCode;

use super::text::short;
use crate::error::ModelError;

/// The provider and the model of a call, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    /// A sentence about the provider's address, for an answer that comes from a wrong address.
    pub(crate) advice: Option<&'a str>,
}

pub(crate) fn unknown_provider(provider: &str) -> ModelError {
    ModelError::new(
        FailureCode::LlmNotFound,
        format!(
            "The worker's configuration has no provider `{provider}`; add [providers.{provider}]."
        ),
    )
}

pub(crate) fn stream_cut(provider: &str) -> ModelError {
    ModelError::new(
        FailureCode::LlmStreamCut,
        format!("The stream of provider `{provider}` ended before the reply did."),
    )
}

/// Returns the error of a reply without a text and without a call.
pub(crate) fn empty(provider: &str, word: Option<&str>) -> ModelError {
    let word = word.map_or_else(
        || "no finish word".to_owned(),
        |word| format!("`{}`", short(word)),
    );
    ModelError::new(
        FailureCode::LlmEmptyReply,
        format!(
            "Provider `{provider}` ended the reply ({word}) without a text and without a tool call; ask again, or check \
             that the model can use the agent's tools."
        ),
    )
}

/// Returns the error of a body in an unknown encoding.
pub(crate) fn unknown_encoding(call: Call<'_>) -> ModelError {
    ModelError::new(
        FailureCode::LlmBadRequest,
        format!(
            "Provider `{}` compressed the reply in a way that Everturn did not ask for and cannot read; only gzip and \
             deflate are known.",
            call.provider
        ),
    )
}

/// Returns the error of a reply that the provider stopped, or did not begin, because of its content.
pub(crate) fn content_policy(provider: &str, reason: &str) -> ModelError {
    let reason = short(reason);
    ModelError::new(
        FailureCode::LlmContentPolicy,
        format!(
            "The content policy of provider `{provider}` forbids the request or the reply: {reason}"
        ),
    )
}

/// Returns the error of a reply that the provider ended before its completion, by its stop reason.
pub(crate) fn broken_off(provider: &str, reason: &str) -> ModelError {
    let reason = short(reason);
    unavailable(
        provider,
        &format!("the provider broke off the reply ({reason})"),
    )
}

pub(crate) fn from_reqwest(call: Call<'_>, error: &reqwest::Error) -> ModelError {
    if error.is_connect() {
        // Without a connection, the provider has no request.
        return unavailable(call.provider, &root(error)).refused();
    }
    if error.is_timeout() {
        return unavailable(call.provider, "the provider sent no data for too long");
    }
    if error.is_builder() {
        let message = format!(
            "The request to provider `{}` could not be made: {}.",
            call.provider,
            root(error)
        );
        return ModelError::new(FailureCode::LlmBadRequest, message);
    }
    if error.is_request() {
        return unavailable(call.provider, &root(error));
    }
    stream_cut(call.provider)
}

fn unavailable(provider: &str, reason: &str) -> ModelError {
    let reason = reason.trim_end_matches('.');
    let message = format!("Provider `{provider}` is not available: {reason}.");
    ModelError::new(FailureCode::LlmUnavailable, message)
}

pub(crate) fn unreadable(call: Call<'_>, error: &dyn std::fmt::Display) -> ModelError {
    tracing::warn!(provider = call.provider, %error, "the model's reply cannot be read");
    let message = format!(
        "Provider `{}` sent a reply that cannot be read.",
        call.provider
    );
    ModelError::new(FailureCode::LlmInvalidResponse, message)
}

/// Returns the innermost reason. The outer reasons only report the failed request, and name the URL.
fn root(error: &dyn StdError) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    short(&inner.to_string())
}
