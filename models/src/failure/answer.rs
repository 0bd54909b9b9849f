//! The error of an HTTP status, and of an error within a stream: the code, and the message for readers.
//!
//! The provider's words stand at the end of each message.

use std::time::Duration;

use everturn_proto::words::FailureCode;
use everturn_untrusted::retry_after;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::{
    kinds::{by_status, by_words},
    own::{Call, content_policy},
    report::Report,
    table::Kind,
    text::beginning,
};
use crate::error::ModelError;

/// The most characters of an unreadable frame that an error shows.
const SHOWN_CHARS: usize = 200;

/// Returns the error of an answer with an HTTP error.
pub(crate) fn from_status(
    call: Call<'_>,
    status: StatusCode,
    body: &str,
    headers: &HeaderMap,
) -> ModelError {
    let mut report = Report::of_text(body);
    if status.is_redirection() {
        return redirect(call, status, &report);
    }
    report.set_wait(retry_after::from_headers(headers));
    Answer::new(call, Some(status.as_u16()), &report).error()
}

/// Returns the error of an error event in the middle of a stream. Gateways put the HTTP status of the provider behind
/// them into the error. The provider has accepted the call and may bill it.
pub(crate) fn from_body(call: Call<'_>, body: &Value) -> ModelError {
    let report = Report::of(body);
    Answer::new(call, report.status, &report).error().accepted()
}

/// Returns the error of a frame that is no JSON. A server wrote an error as a text, or the frame was damaged on its way.
pub(crate) fn unreadable_frame(call: Call<'_>, text: &str) -> ModelError {
    known(call, text).unwrap_or_else(|| {
        ModelError::new(
            FailureCode::LlmStreamCut,
            format!(
                "Provider `{}` sent a frame that is no JSON, and the reply ended there: {}",
                call.provider,
                beginning(text, SHOWN_CHARS)
            ),
        )
    })
}

/// Returns the error of a body that is neither a stream nor JSON. `has_begun` is true when a part of a reply came before
/// the text.
pub(crate) fn not_a_stream(call: Call<'_>, text: &str, has_begun: bool) -> ModelError {
    // JSON that is damaged is no sign of a wrong address.
    if has_begun || text.trim_start().starts_with(['{', '[']) {
        return unreadable_frame(call, text);
    }
    let provider = call.provider;
    let report = Report::of_text(text);
    let kind = if report.is_page { "HTML" } else { "a text" };
    let error = (!report.is_page).then(|| known(call, text)).flatten();
    let advice = call.advice.map_or_else(String::new, |it| format!(" {it}"));
    error.unwrap_or_else(|| {
        ModelError::new(
            FailureCode::LlmBadRequest,
            format!(
                "Provider `{provider}` answered with {kind} in place of a reply: check `base_url` of \
                 [providers.{provider}], and proxies on the way.{advice} The answer begins: {}",
                beginning(&report.words().unwrap_or_default(), SHOWN_CHARS)
            ),
        )
    })
}

/// Returns the error of a text whose words are in the table.
fn known(call: Call<'_>, text: &str) -> Option<ModelError> {
    let report = Report::of_text(text);
    let answer = Answer::new(call, None, &report);
    answer.is_known.then(|| answer.error())
}

fn redirect(call: Call<'_>, status: StatusCode, report: &Report) -> ModelError {
    let provider = call.provider;
    let message = format!(
        "Provider `{provider}` sends elsewhere ({status}): check `base_url` of [providers.{provider}]."
    );
    ModelError::new(FailureCode::LlmBadRequest, with(message, report.words()))
}

/// A provider's error.
struct Answer<'a> {
    call: Call<'a>,
    /// The HTTP status; `None` within a stream.
    status: Option<u16>,
    kind: Kind,
    /// True when the words decided the kind.
    is_known: bool,
    words: Option<String>,
    wait: Option<Duration>,
    is_page: bool,
}

impl<'a> Answer<'a> {
    fn new(call: Call<'a>, status: Option<u16>, report: &Report) -> Self {
        // The status of the provider behind a gateway is more exact than the gateway's.
        let exact = report.inner_status.or(status);
        let kind = match status {
            Some(402) => Some(Kind::Quota),
            _ => by_words(report, exact),
        };
        Self {
            call,
            status,
            kind: kind.unwrap_or_else(|| by_status(exact)),
            is_known: kind.is_some(),
            words: report.words(),
            wait: report.wait().map(retry_after::bounded),
            is_page: report.is_page,
        }
    }

    fn error(self) -> ModelError {
        let (code, message) = self.code_and_message();
        let may_wait = matches!(
            code,
            FailureCode::LlmRateLimited | FailureCode::LlmOverloaded | FailureCode::LlmUnavailable
        );
        let error = ModelError {
            retry_after: self.wait.filter(|_| may_wait),
            ..ModelError::new(code, message)
        };
        // A provider answers 503 before any work.
        if self.status == Some(503) {
            error.refused()
        } else {
            error
        }
    }

    fn code_and_message(&self) -> (FailureCode, String) {
        let Call {
            provider, model, ..
        } = self.call;
        match self.kind {
            Kind::BadCall => (
                FailureCode::LlmInvalidResponse,
                self.said("could not read what the model wrote"),
            ),
            Kind::TooLong => (
                FailureCode::LlmContextTooLong,
                self.and_words(format!(
                    "The conversation is longer than model `{model}` can read: set `context_window` of the agent to \
                     the model's context window, or begin a new conversation."
                )),
            ),
            Kind::Quota => (
                FailureCode::LlmQuotaExceeded,
                self.said("takes no more calls of the account; check the account's plan and limits"),
            ),
            Kind::Policy => {
                let reason = self.words.as_deref();
                let error = content_policy(provider, reason.unwrap_or("the provider gives no reason."));
                (error.code, error.message)
            }
            Kind::Key => (FailureCode::LlmUnauthorized, self.unauthorized()),
            Kind::Overloaded => (FailureCode::LlmOverloaded, self.said("has too much to do")),
            Kind::RateLimited => (
                FailureCode::LlmRateLimited,
                self.said("limits the rate of calls"),
            ),
            Kind::Unavailable => (FailureCode::LlmUnavailable, self.said("is not available")),
            Kind::NotFound => (
                FailureCode::LlmNotFound,
                self.and_words(format!(
                    "Provider `{provider}` does not know model `{model}` or the address ({}): check `model` of the \
                     agent and `base_url` of [providers.{provider}].{}",
                    self.shown_status(),
                    self.advice()
                )),
            ),
            Kind::BadRequest => (FailureCode::LlmBadRequest, self.refused()),
        }
    }

    fn mentions(&self, name: &str) -> bool {
        let words = self.words.as_deref();
        words.is_some_and(|words| words.contains(name))
    }

    /// Returns the advice about the address, unless the provider speaks of the model.
    fn advice(&self) -> String {
        let words = self.words.as_deref().unwrap_or_default();
        let advice = self.call.advice;
        let advice = advice.filter(|_| !words.to_lowercase().contains("model"));
        advice.map_or_else(String::new, |advice| format!(" {advice}"))
    }

    fn refused(&self) -> String {
        match self.status {
            Some(413) => self.said("refused the request because its body is too large"),
            _ if self.mentions("stream_options") => self.and_words(format!(
                "Provider `{0}` refused the request ({1}): set `stream_options = false` in [providers.{0}.profile].",
                self.call.provider,
                self.shown_status()
            )),
            Some(405) => self.said("answers no model calls at the address; check `base_url`"),
            _ => self.said("refused the request"),
        }
    }

    fn unauthorized(&self) -> String {
        let Call {
            provider, model, ..
        } = self.call;
        let status = self.shown_status();
        if self.is_page {
            return self.and_words(format!(
                "A web page refused the call to provider `{provider}` ({status}): check `base_url` of \
                 [providers.{provider}], proxies and firewalls on the way, and the environment variable named by \
                 `api_key_env`."
            ));
        }
        let message = format!(
            "Provider `{provider}` refused the key ({status}): check the environment variable named by `api_key_env` \
             of [providers.{provider}], and that the key may use model `{model}`."
        );
        // Some providers repeat the beginning and the end of a refused key.
        let has_key = self
            .words
            .as_ref()
            .is_some_and(|words| words.contains("**"));
        with(message, self.words.clone().filter(|_| !has_key))
    }

    fn said(&self, text: &str) -> String {
        let provider = self.call.provider;
        let status = self.status;
        let status = status.map_or_else(String::new, |status| format!(" ({status})"));
        let words = self.words.as_deref();
        let words = words.map_or_else(|| ".".to_owned(), |words| format!(": {words}"));
        format!("Provider `{provider}` {text}{status}{words}")
    }

    fn and_words(&self, message: String) -> String {
        with(message, self.words.clone())
    }

    fn shown_status(&self) -> String {
        let status = self.status;
        status.map_or_else(|| "in the stream".to_owned(), |status| status.to_string())
    }
}

/// Adds the provider's words to a message.
fn with(message: String, words: Option<String>) -> String {
    match words {
        Some(words) => format!("{message} The provider says: {words}"),
        None => message,
    }
}
