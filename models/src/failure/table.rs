//! The table of errors: the names and the words by which providers report each kind of error.
//!
//! Providers use equal statuses for errors with different remedies, and wrap an error with one status into an error with
//! another status. Only a code, a type or the words distinguish the errors. The words for a context that is too long
//! stand in `too_long.rs`.

/// The kind of an error. Each kind has a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The model wrote a call that the provider could not read.
    BadCall,
    /// The context is too long for the model.
    TooLong,
    /// The account may make no more calls.
    Quota,
    /// The content policy forbids the request.
    Policy,
    /// The key is not valid, or may not use the model.
    Key,
    /// The provider has too many calls from its customers.
    Overloaded,
    /// The account has too many calls for a while.
    RateLimited,
    /// The provider is away, or the model is not ready.
    Unavailable,
    /// The provider does not know the model.
    NotFound,
    /// The request is wrong.
    BadRequest,
}

/// A row of the table. The first fitting row decides.
pub(super) struct Row {
    pub(super) kind: Kind,
    /// The HTTP statuses at which the row counts; `None` is an error within a stream, without a status.
    pub(super) at: fn(Option<u16>) -> bool,
    /// The types, codes and states of the error, squeezed.
    pub(super) names: &'static [&'static str],
    /// Names that count in a text, too, in any spelling.
    pub(super) mentions: &'static [&'static str],
    /// Phrases, in small letters and without quotes. The parts around `…` follow each other at any distance.
    pub(super) phrases: &'static [&'static str],
}

/// The rows that come first: a model's words in a failed call are about anything.
pub(super) const BAD_CALL: [Row; 1] = [Row {
    kind: Kind::BadCall,
    at: |status| matches!(status, None | Some(400 | 422 | 500..=599)),
    names: &[],
    mentions: &[
        "toolusefailed",
        "jsonvalidatefailed",
        "outputparsefailed",
        "malformedfunctioncall",
        "failedgeneration",
    ],
    phrases: &[
        "failed to call a function",
        "failed to parse tool",
        "failed to parse function",
        "error parsing tool call",
        "parse tool call",
        "invalid tool call arguments",
        "tool call validation failed",
        "generated output that could not be parsed",
        "malformed tool call",
        "malformed function call",
        "model produced invalid",
        "model produced an invalid",
        // llama.cpp reads the model's text with a grammar.
        "failed to parse input at pos",
        "now finding less tool calls",
    ],
}];
const QUOTA: Row = Row {
    kind: Kind::Quota,
    at: |_| true,
    names: &["arrearage", "budgetexceeded", "paymentrequired"],
    mentions: &[
        "insufficientquota",
        "insufficientuserquota",
        "insufficientbalance",
        "insufficientcredit",
        "insufficientfunds",
        "billinghardlimitreached",
        "billingnotactive",
        "billingerror",
        "exceededcurrentquotaerror",
        "usagelimitreached",
        "freetieronly",
        "exceededbudget",
    ],
    phrases: &[
        "credit balance is too low",
        "used all available credits",
        "not enough credit",
        "no credit",
        "out of credit",
        "no remaining credit",
        "requires more credits",
        "add more credits",
        "purchase more credits",
        "credits exhausted",
        "exhausted…credits",
        "quota exhausted",
        "balance is insufficient",
        "please recharge",
        "account is not active",
        "monthly limit",
        "monthly usage limit",
        "monthly quota",
        "monthly spend",
        "spend limit",
        "spending limit",
        "billing hard limit",
        "over budget",
        "payment required",
        "payment method",
        "余额不足",
        "欠费",
    ],
};
const POLICY: Row = Row {
    kind: Kind::Policy,
    at: |_| true,
    names: &[],
    mentions: &[
        "contentpolicyviolation",
        "contentfilter",
        "responsibleaipolicyviolation",
        "moderationblocked",
        "datainspectionfailed",
        "sensitivecontentdetected",
        "prohibitedcontent",
        "guardrailintervened",
    ],
    phrases: &[
        "content filtering policy",
        "content management policy",
        "content policy",
        "requires moderation",
        "content moderation",
        "was flagged",
        "usage policy",
        "usage policies",
        "usage guidelines",
        "safety system",
        "inappropriate content",
        "sensitive content",
        "unsafe content",
        "content exists risk",
        "considered high risk",
        "new_sensitive",
        "blocked by…guardrail",
        "blocked due to safety",
    ],
};
const KEY: Row = Row {
    kind: Kind::Key,
    at: |status| matches!(status, None | Some(400)),
    names: &["authenticationerror", "permissionerror", "unauthenticated"],
    mentions: &[
        "invalidapikey",
        "apikeyinvalid",
        "incorrectapikey",
        "apikeynotvalid",
        "apikeyexpired",
        "invalidxapikey",
        "permissiondenied",
        "insufficientpermission",
        "unauthorized",
    ],
    phrases: &[],
};
const OVERLOADED: Row = Row {
    kind: Kind::Overloaded,
    at: |status| !matches!(status, Some(401..=403)),
    names: &["slowdown"],
    mentions: &[
        "overloaded",
        "capacityexceeded",
        "insufficientcapacity",
        "exceededcapacity",
    ],
    phrases: &[
        "at capacity",
        "over capacity",
        "out of capacity",
        "no capacity",
        "no available capacity",
        "no instances available",
        "no available instances",
        "high demand",
        "high traffic",
        "heavy load",
        "high load",
        "server is busy",
        "servers are busy",
        "service is busy",
        "system is busy",
        "model is busy",
    ],
};
const LOADING: Row = Row {
    kind: Kind::Unavailable,
    at: |status| !matches!(status, Some(401..=403)),
    names: &["modelnotreadyexception"],
    mentions: &[],
    phrases: &[
        "is loading",
        "loading model",
        "currently loading",
        "still loading",
        "being loaded",
        "warming up",
        "model is not ready",
        "model is starting",
        "cold start",
    ],
};
const RATE_LIMITED: Row = Row {
    kind: Kind::RateLimited,
    at: |status| !matches!(status, Some(401 | 402 | 404 | 408)),
    names: &["tokens", "requests", "ratelimited", "resourceexhausted"],
    mentions: &[
        "ratelimitexceeded",
        "ratelimiterror",
        "ratelimitreached",
        "toomanyrequests",
        "throttlingexception",
        "throttlingratequota",
        "throttlingerror",
    ],
    phrases: &[
        "temporarily rate-limited",
        "exceed…rate limit",
        "your rate limit",
        "too many tokens…wait",
    ],
};
const NOT_FOUND: Row = Row {
    kind: Kind::NotFound,
    at: |status| matches!(status, None | Some(400)),
    names: &["notfounderror", "modelnotfound"],
    mentions: &[],
    phrases: &[],
};
const BAD_REQUEST: Row = Row {
    kind: Kind::BadRequest,
    at: |status| status.is_none(),
    names: &[
        "invalidrequesterror",
        "invalidprompt",
        "invalidargument",
        "requesttoolarge",
        "badrequesterror",
        "validationerror",
        "unprocessableentityerror",
    ],
    mentions: &[],
    phrases: &[],
};

/// The rows that come after the words for a context that is too long.
pub(super) const FIRM: [Row; 3] = [QUOTA, POLICY, KEY];
/// The rows that come after the words for a limit that may be a quota.
pub(super) const REST: [Row; 5] = [OVERLOADED, LOADING, RATE_LIMITED, NOT_FOUND, BAD_REQUEST];
