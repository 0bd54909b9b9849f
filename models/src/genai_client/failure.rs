//! Makes the error of a model call from an error of genai. The meaning of the error is in `models/src/failure.rs`.

use std::error::Error as StdError;

use everturn_proto::words::FailureCode;
use genai::{Error, webc};

use crate::{
    error::ModelError,
    failure::{Call, from_body, from_reqwest, from_status, stream_cut, unavailable, unreadable},
};

/// Returns the error of a call through genai.
pub(super) fn from_genai(provider: &str, model: &str, error: &Error) -> ModelError {
    let call = Call { provider, model };
    match error {
        // genai wraps the HTTP errors of a streamed call in this variant, which has no status.
        Error::WebStream { error, .. } => from_transport(call, error.as_ref()),
        Error::HttpError {
            status,
            body,
            headers,
            ..
        } => from_status(call, *status, body, headers),
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
            match webc_error {
                webc::Error::ResponseFailedStatus {
                    status,
                    body,
                    headers,
                } => from_status(call, *status, body, headers),
                webc::Error::Reqwest(error) => from_reqwest(call, error),
                other => unreadable(call, other),
            }
        }
        Error::ChatResponse { body, .. } => from_body(call, body),
        // The stream was cut at an incomplete event. An event with invalid JSON was damaged on its way: the model may
        // have written well, so the damage does not count as an unusable reply.
        Error::StreamParse { serde_error, .. } => {
            tracing::warn!(provider, error = %serde_error, "an event of the model's reply is not JSON");
            stream_cut(provider)
        }
        Error::JsonValueExt(error) => unreadable(call, error),
        Error::SerdeJson(error) => unreadable(call, error),
        other => {
            tracing::warn!(provider, error = %other, "the model request could not be made");
            let message = format!(
                "The request to provider `{provider}` could not be made; the worker's log says why."
            );
            ModelError::new(FailureCode::LlmBadRequest, message)
        }
    }
}

fn from_transport(call: Call<'_>, error: &(dyn StdError + Send + Sync + 'static)) -> ModelError {
    if let Some(error) = error.downcast_ref::<Error>() {
        return from_genai(call.provider, call.model, error);
    }
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return from_reqwest(call, error);
    }
    if error.is::<webc::StreamTimeout>() {
        return unavailable(call, "the provider sent no data for too long", None);
    }
    // The remaining case is a text with invalid UTF-8: the body was cut in the middle of a character.
    stream_cut(call.provider)
}
