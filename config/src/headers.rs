//! The headers of requests that a file must not set: of model providers, and of HTTP tools.

/// The reason why a file must not set a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserved {
    /// The header holds a secret, and secrets come from the environment.
    Secret,
    /// The header belongs to the connection or describes the body.
    Connection,
}

/// The reserved headers, in small letters.
const RESERVED: &[(&str, Reserved)] = &[
    ("api-key", Reserved::Secret),
    ("authorization", Reserved::Secret),
    ("cookie", Reserved::Secret),
    ("proxy-authorization", Reserved::Secret),
    ("x-api-key", Reserved::Secret),
    ("x-goog-api-key", Reserved::Secret),
    ("accept-encoding", Reserved::Connection),
    ("connection", Reserved::Connection),
    ("content-encoding", Reserved::Connection),
    ("content-length", Reserved::Connection),
    ("content-type", Reserved::Connection),
    ("host", Reserved::Connection),
    ("te", Reserved::Connection),
    ("transfer-encoding", Reserved::Connection),
    ("upgrade", Reserved::Connection),
];

/// Returns the reason why a file must not set the header; `None` for a free header.
pub(crate) fn reserved(header: &str) -> Option<Reserved> {
    let found = RESERVED
        .iter()
        .find(|(name, _)| header.eq_ignore_ascii_case(name));
    found.map(|(_, reason)| *reason)
}
