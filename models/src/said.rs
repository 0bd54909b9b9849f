//! The meaning of a provider's error body: the provider's message, the kind of error, and the time to wait.
//!
//! Providers use equal statuses for errors with different remedies. Only a code, a type or the words of the body
//! distinguish the errors.

use std::time::Duration;

use serde_json::Value;

/// The most characters of a provider's message that are kept.
pub(super) const MAX_DETAIL_CHARS: usize = 500;
/// The phrases by which providers report a too long context, and OpenAI's code for it. Only the body of a 400 has the phrases.
const TOO_LONG: [&str; 8] = [
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "maximum prompt length",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "context window",
    "available context size",
];
/// The names of errors by which providers report an account without quota. The status is the status of a rate limit,
/// but waiting does not help. The words are OpenAI's and Anthropic's.
const QUOTA: [&str; 3] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_error",
];
/// The phrases by which Anthropic and xAI report an account without credit, in an ordinary 400 or 403.
const NO_CREDIT: [&str; 2] = ["credit balance is too low", "used all available credits"];
/// The names of errors by which OpenAI, Azure and OpenRouter report a request against their content policy.
const POLICY: [&str; 4] = [
    "content_policy_violation",
    "content_filter",
    "ResponsibleAIPolicyViolation",
    "moderation_blocked",
];
/// The phrases by which Anthropic, Azure and OpenRouter report a request against their content policy.
const POLICY_WORDS: [&str; 3] = [
    "content filtering policy",
    "content management policy",
    "requires moderation",
];
/// The names of errors by which providers report too many calls for their capacity.
const OVERLOADED: [&str; 4] = [
    "overloaded_error",
    "engine_overloaded",
    "server_overloaded",
    "slow_down",
];

/// The kind of error in a body, for any status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The account may make no more calls.
    Quota,
    /// The content policy forbids the request.
    Policy,
    /// The context is too long.
    TooLong,
    /// The key is not valid.
    Key,
    /// The provider is overloaded.
    Overloaded,
}

/// Returns the kind of error, when the body tells more than the status.
pub(super) fn kind(body: &Value) -> Option<Kind> {
    let words = detail(body).unwrap_or_default().to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let error = inner_error(body);
    if names(error, &QUOTA) || says(&NO_CREDIT) || is_daily_quota(error) {
        Some(Kind::Quota)
    } else if names(error, &POLICY) || says(&POLICY_WORDS) {
        Some(Kind::Policy)
    } else if names(error, &TOO_LONG[..1]) || names(body, &TOO_LONG[..1]) || says(&TOO_LONG) {
        Some(Kind::TooLong)
    } else if gemini_details(error).any(|it| it["reason"] == "API_KEY_INVALID") {
        Some(Kind::Key)
    } else if names(error, &OVERLOADED) || says(&["is overloaded"]) {
        Some(Kind::Overloaded)
    } else {
        None
    }
}

/// True when the error's type, code or status is one of the words.
pub(super) fn names(error: &Value, words: &[&str]) -> bool {
    let pointers = ["/type", "/code", "/status", "/innererror/code"];
    pointers
        .iter()
        .filter_map(|pointer| error.pointer(pointer)?.as_str())
        .any(|word| words.contains(&word))
}

/// Returns the error within the body; some providers wrap it once more.
pub(super) fn inner_error(body: &Value) -> &Value {
    body.get("error")
        .filter(|error| error.is_object())
        .unwrap_or(body)
}

/// Returns the provider's message, from the common fields for it.
pub(super) fn detail(body: &Value) -> Option<String> {
    let pointers = ["/error/message", "/message", "/error", "/detail"];
    let text = pointers
        .into_iter()
        .find_map(|pointer| body.pointer(pointer)?.as_str())?;
    let text: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_DETAIL_CHARS)
        .collect();
    (!text.trim().is_empty()).then_some(text)
}

/// Returns the time that Gemini asks to wait. Gemini writes the time into the body, and into no header.
pub(super) fn retry_delay(body: &Value) -> Option<Duration> {
    let delay = gemini_details(inner_error(body)).find_map(|it| it.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// True for a 429 of Gemini that lasts until the next day: Gemini's quotas of a minute and of a day have equal
/// messages.
fn is_daily_quota(error: &Value) -> bool {
    gemini_details(error)
        .filter_map(|it| it.get("violations")?.as_array())
        .flatten()
        .filter_map(|violation| violation.get("quotaId")?.as_str())
        .any(|quota| quota.contains("PerDay"))
}

fn gemini_details(error: &Value) -> impl Iterator<Item = &Value> {
    error
        .get("details")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
