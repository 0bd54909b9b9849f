//! Makes the error of a model call from an error of genai. What it means is said in `model/failure.rs`.

use std::error::Error as StdError;

use everturn_proto::words::FailureCode;
use genai::{Error, webc};

use crate::model::{
    ModelError,
    failure::{Call, from_body, from_reqwest, from_status, stream_cut, unavailable, unreadable},
};

/// The error of a call through genai.
pub(super) fn from_genai(provider: &str, model: &str, error: &Error) -> ModelError {
    let call = Call { provider, model };
    match error {
        // genai wraps the HTTP errors of a streamed call in this one, which has no status of its own.
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
        // An event that is not whole is where the stream was cut. One that is no JSON was damaged on its way: the model
        // may have written well, so it does not count as a reply that cannot be used.
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
        return unavailable(call, "it sent nothing for too long", None);
    }
    // Only a text that is not UTF-8 is left: the body was cut in the middle of a character.
    stream_cut(call.provider)
}
