//! What the body of a provider's error says: its own message, what kind of error it is, and how long to wait.
//!
//! Providers use the same statuses for errors that need different answers. Only a code, a type or the words of the body tell
//! them apart.

use std::time::Duration;

use serde_json::Value;

/// Characters of a provider's own message that are kept.
pub(super) const MAX_DETAIL_CHARS: usize = 500;
/// How providers say that the context is too long, beside OpenAI's code. It is said nowhere but in the body of a 400.
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
/// What providers name an error that says that the account may make no more calls. Its status is that of a rate limit,
/// but waiting does not help. The words are OpenAI's and Anthropic's.
const QUOTA: [&str; 3] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_error",
];
/// How Anthropic and xAI say it in an ordinary 400 or 403.
const NO_CREDIT: [&str; 2] = ["credit balance is too low", "used all available credits"];
/// What OpenAI, Azure and OpenRouter name an error that says that their content policy forbids a request.
const POLICY: [&str; 4] = [
    "content_policy_violation",
    "content_filter",
    "ResponsibleAIPolicyViolation",
    "moderation_blocked",
];
/// How Anthropic, Azure and OpenRouter say it.
const POLICY_WORDS: [&str; 3] = [
    "content filtering policy",
    "content management policy",
    "requires moderation",
];
/// What providers name an error that says that they have more calls than they can take.
const OVERLOADED: [&str; 4] = [
    "overloaded_error",
    "engine_overloaded",
    "server_overloaded",
    "slow_down",
];

/// What kind of error a body describes, whatever its status.
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
    /// The provider has too much to do.
    Overloaded,
}

/// The kind of error, when the body says one of those that a status does not tell.
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

/// True when the error's type, code or status is one of these words.
pub(super) fn names(error: &Value, words: &[&str]) -> bool {
    let places = ["/type", "/code", "/status", "/innererror/code"];
    places
        .iter()
        .filter_map(|place| error.pointer(place)?.as_str())
        .any(|word| words.contains(&word))
}

/// The error itself, which some providers wrap once more.
pub(super) fn inner_error(body: &Value) -> &Value {
    body.get("error")
        .filter(|error| error.is_object())
        .unwrap_or(body)
}

/// The provider's own message, from the places where providers commonly put it.
pub(super) fn detail(body: &Value) -> Option<String> {
    let places = ["/error/message", "/message", "/error", "/detail"];
    let text = places
        .into_iter()
        .find_map(|place| body.pointer(place)?.as_str())?;
    let text: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_DETAIL_CHARS)
        .collect();
    (!text.trim().is_empty()).then_some(text)
}

/// How long Gemini asks to wait. It says so in the body, and in no header.
pub(super) fn retry_delay(body: &Value) -> Option<Duration> {
    let delay = gemini_details(inner_error(body)).find_map(|it| it.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// True for a 429 of Gemini that holds until the next day: its quotas of a minute and of a day have the same words.
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
