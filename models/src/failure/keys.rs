//! The keys of errors. Providers write the same key in several ways (`error_message`, `errorMessage`), so keys are
//! compared in small letters and without signs.

/// A key's meaning in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A text for people, or an object with one. The number is the rank of the text: smaller ranks come first.
    Words(u8),
    /// The type, the code or the state of the error: a word, or an HTTP status.
    Name,
    /// Parts of the error.
    Parts,
    /// An answer of the provider behind a gateway.
    Raw,
    /// The name of the provider behind a gateway.
    Upstream,
    /// A time to wait: a text with a unit, or a number of milliseconds.
    Wait { unit_ms: u16 },
}

/// The keys with a text, in the order in which a message shows their texts.
const WORDS: [&str; 22] = [
    "error",
    "title",
    "errors",
    "message",
    "msg",
    "errormessage",
    "errormsg",
    "errordescription",
    "faultstring",
    "statusmsg",
    "statusmessage",
    "statustext",
    "failurereason",
    "description",
    "cause",
    "exception",
    "reasons",
    "detail",
    "details",
    "errordetails",
    "innererror",
    "originalerror",
];
const NAMES: [&str; 15] = [
    "type",
    "code",
    "status",
    "statuscode",
    "httpcode",
    "httpstatus",
    "httpstatuscode",
    "errorcode",
    "errortype",
    "errno",
    "reason",
    "name",
    "kind",
    "quotaid",
    "object",
];
const PARTS: [&str; 10] = [
    "choices",
    "metadata",
    "response",
    "fault",
    "baseresp",
    "violations",
    "headers",
    "body",
    "data",
    "extensions",
];

/// Returns a key's meaning; `None` for keys that are no part of an error. A request that the provider repeats is under
/// such a key.
pub(super) fn meaning(key: &str) -> Option<Meaning> {
    let key = squeezed(key);
    if let Some(rank) = WORDS.iter().position(|word| *word == key) {
        return Some(Meaning::Words(u8::try_from(rank).unwrap_or(u8::MAX)));
    }
    let unit_ms = match key.as_str() {
        "retrydelay" | "retryafter" | "retryafterseconds" | "estimatedtime" => Some(1000),
        "retryafterms" | "retryaftermilliseconds" => Some(1),
        _ => None,
    };
    match (unit_ms, key.as_str()) {
        (Some(unit_ms), _) => Some(Meaning::Wait { unit_ms }),
        (None, "raw") => Some(Meaning::Raw),
        (None, "providername") => Some(Meaning::Upstream),
        (None, key) if NAMES.contains(&key) => Some(Meaning::Name),
        (None, key) if PARTS.contains(&key) || key.contains("error") => Some(Meaning::Parts),
        (None, _) => None,
    }
}

/// Returns a name or a text in small letters and without signs, so that `rate_limit_error`, `RateLimitError` and "rate
/// limit error" are equal.
pub(super) fn squeezed(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
