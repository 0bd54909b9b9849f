//! The words by which providers report a context that is longer than the model's window.
//!
//! Two other errors have similar words: a limit of tokens in a minute, and a request for too many output tokens.

use super::report::Report;

/// Names of the error. The names count in a text, too.
const NAMES: [&str; 10] = [
    "contextlengthexceeded",
    "contextwindowexceeded",
    "exceedcontextsize",
    "contextoverflow",
    "modelmaxprompttokensexceeded",
    "tokenslimitreached",
    "prompttoolong",
    "inputtoolong",
    "contexttoolong",
    "contextlimitexceeded",
];
/// Phrases with one meaning.
const PHRASES: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "context limit",
    "context the overflows",
    "maximum context",
    "max context",
    "contextual limit",
    "required for long context requests",
    "long context beta is not",
    "prompt is too long",
    "prompt was too long",
    "prompt too long",
    "prompt is too large",
    "prompt too large",
    "input is too long",
    "input was too long",
    "input too long",
    "inputs are too long",
    "messages are too long",
    "conversation is too long",
    "conversation too long",
    "messages too long",
    "context too long",
    "context is too long",
    "history is too long",
    "text is too long",
    "request is too long",
    "is longer than the model",
    "longer than the maximum model length",
    "maximum model length",
    "max_model_len",
    "max_seq_len",
    "maximum sequence length",
    "maximum prompt length",
    "max prompt length",
    "prompt length…exceed",
    "sequence length…exceed",
    "prompt exceeds",
    "prompt token count…exceed",
    "prompt_tokens…must be less",
    "number of tokens in the prompt",
    "number of tokens to keep",
    "maximum input length",
    "max input length",
    "maximum allowed input length",
    "input length…exceed",
    "range of input length",
    "input token count…exceed",
    "input token count…only supports",
    "number of input tokens…exceed",
    "maximum allowed number of input tokens",
    "maximum number of input tokens",
    "maximum input tokens",
    "max input tokens",
    "input tokens exceed",
    "input tokens…is too long",
    "too many input tokens",
    "exceeds the maximum number of tokens",
    "exceed max message tokens",
    "exceeded model token limit",
    "exceeds the model token limit",
    "exceeds the models token limit",
    "inputs tokens + max_new_tokens must be",
    "inputs must have less than",
    "must be at least 1, got -",
    "request too large…token",
    "too large for model",
    "too large for…token",
    "tokens…is too large to process",
    "current length is…limit is",
    "超长",
    "上下文长度",
];
/// Phrases that also report a limit of tokens in a minute.
const WEAK: &[&str] = &[
    "token limit",
    "tokens limit",
    "too many tokens",
    "tokens exceed",
    "exceed…context",
    "context…exceed",
    "context overflow",
    "reduce the length",
    "reduce the prompt",
    "reduce your prompt",
    "reduce the input",
    "reduce your input",
    "reduce your message size",
    "reduce the number of messages",
    "reduce the number of tokens",
    "reduce the size of",
    "shorten your",
    "shorten the",
    "shorter input",
    "shorter prompt",
];
/// The three parts of a sentence in unknown words: a part of the request, an excess, and a unit.
const SENTENCE: [&[&str]; 3] = [
    &[
        "prompt",
        "input",
        "message",
        "conversation",
        "history",
        "request",
        "sequence",
        "total",
        "token count",
        "token length",
    ],
    &[
        "too long",
        "too large",
        "too many",
        "exceed",
        "longer than",
        "larger than",
        "greater than",
        "more than",
        "at most",
        "must be less",
    ],
    &["token", "context"],
];
/// Words that are no part of a sentence about a context: names of parameters, and pydantic's words for any fault.
const NO_SENTENCE: [&str; 8] = [
    "maximum tokens you requested",
    "maximum tokens value",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "budget_tokens",
    "input should",
];
/// Signs of a limit in a span of time.
const RATE: [&str; 12] = [
    "rate limit",
    "rate-limit",
    "ratelimit",
    "per min",
    "per-min",
    "per day",
    "per hour",
    "per second",
    "please wait",
    "throttl",
    "too many requests",
    "quota",
];
/// The parameter for the longest reply, and its unit.
const OUTPUT: [&str; 7] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "maxoutputtokens",
    "completion tokens",
    "output tokens",
];
/// Words about the context of a request.
const INPUT: [&str; 6] = [
    "prompt",
    "input",
    "messages",
    "conversation",
    "history",
    "you requested",
];

/// True when the context is too long.
pub(super) fn is_too_long(report: &Report, status: Option<u16>) -> bool {
    let is_possible = match status {
        None => true,
        Some(401..=404) => false,
        Some(status) => status >= 400,
    };
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| report.says(phrase));
    let is_rate = status == Some(429) || says(&RATE);
    // Go's words for a time-out.
    let is_timeout = report.says("context deadline") || report.says("context canceled");
    let is_weak_possible = !is_rate && !is_timeout && status.is_none_or(|status| status < 500);
    if !is_possible || is_about_output(report) {
        return false;
    }
    let is_larger_than_limit = is_rate && asks_for_more(report);
    let is_body_of_tokens = status == Some(413) && report.is_named("tokens");
    NAMES.iter().any(|name| report.mentions(name))
        || says(PHRASES)
        || (is_weak_possible && (says(WEAK) || has_sentence(&report.searched)))
        || is_larger_than_limit
        || is_body_of_tokens
}

/// True for a text with all parts of a sentence about a context that is too long.
fn has_sentence(text: &str) -> bool {
    let text = NO_SENTENCE
        .iter()
        .fold(text.to_owned(), |text, word| text.replace(word, ""));
    SENTENCE
        .iter()
        .all(|words| words.iter().any(|word| text.contains(word)))
}

/// True when a request asks for more output than the model ever writes. A shorter context does not help.
fn is_about_output(report: &Report) -> bool {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| report.says(phrase));
    if report.says("must be at least 1, got -") || !says(&OUTPUT) {
        return false;
    }
    // vLLM: "max_tokens is too large: 40000. This model's maximum context length is 32768 tokens and your request has …".
    let asked = number_after(&report.searched, "too large");
    let window = number_after(&report.searched, "context length is");
    match asked.zip(window) {
        Some((asked, window)) => asked >= window,
        None => !says(&INPUT),
    }
}

/// True when a single request exceeds a limit of tokens in a span of time: "Limit 30000, Requested 42389". Waiting never
/// helps.
fn asks_for_more(report: &Report) -> bool {
    let limit = number_after(&report.searched, "limit");
    let requested = number_after(&report.searched, "requested");
    let both = limit.zip(requested);
    both.is_some_and(|(limit, requested)| requested > limit)
}

/// Returns the first number right behind a word.
fn number_after(text: &str, word: &str) -> Option<u64> {
    text.match_indices(word).find_map(|(at, _)| {
        let behind = text[at + word.len()..].trim_start_matches([' ', ':', '=']);
        let is_digit = |c: char| c.is_ascii_digit() || c == ',';
        let end = behind.find(|c| !is_digit(c)).unwrap_or(behind.len());
        behind[..end].replace(',', "").parse().ok()
    })
}
