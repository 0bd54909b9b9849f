//! A token with its times, and the secrets that a server must not repeat.

use std::{collections::VecDeque, time::Duration};

use everturn_untrusted::Secrets;
use tokio::time::Instant;

/// A token is renewed when a fifth of its lifetime is left, but at most this long before its end.
const RENEW_BEFORE_END: Duration = Duration::from_secs(60);
/// The number of tokens that are cut out of the server's messages: the current tokens and the tokens before them.
const KNOWN_TOKENS: usize = 8;

/// A token. Tokens from an identical response are equal.
#[derive(Clone)]
pub(in crate::mcp) struct Token {
    value: String,
    number: u64,
    times: Option<Times>,
}

#[derive(Clone, Copy)]
pub(super) struct Times {
    renew: Instant,
    end: Instant,
}

impl Times {
    /// Returns the times of a token that was requested at `begin`.
    pub(super) fn of(begin: Instant, lifetime: Duration) -> Self {
        Self {
            renew: begin + lifetime - before_end(lifetime),
            end: begin + lifetime,
        }
    }
}

/// Returns how long before its end a token is renewed.
pub(super) fn before_end(lifetime: Duration) -> Duration {
    RENEW_BEFORE_END.min(lifetime / 5)
}

impl Token {
    pub(super) fn new(value: String, number: u64, times: Option<Times>) -> Self {
        Self {
            value,
            number,
            times,
        }
    }

    pub(in crate::mcp) fn value(&self) -> &str {
        &self.value
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.times.is_none_or(|times| Instant::now() < times.renew)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.times.is_some_and(|times| Instant::now() >= times.end)
    }

    /// The number of the token, which rises with each new token.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

pub(super) fn is_same(one: Option<&Token>, other: Option<&Token>) -> bool {
    one.map(|token| token.number) == other.map(|token| token.number)
}

/// The client's secret and the last tokens, which the server must not repeat.
#[derive(Default)]
pub(super) struct KnownSecrets {
    /// The last tokens, with the newest at the end.
    tokens: VecDeque<String>,
    secrets: Secrets,
}

impl KnownSecrets {
    pub(super) fn add<'t>(
        &mut self,
        tokens: impl IntoIterator<Item = &'t str>,
        client_secret: Option<&str>,
    ) {
        for token in tokens {
            if !self.tokens.iter().any(|known| known == token) {
                self.tokens.push_back(token.to_owned());
            }
        }
        while self.tokens.len() > KNOWN_TOKENS {
            self.tokens.pop_front();
        }
        let known = self.tokens.iter().map(String::as_str);
        self.secrets = Secrets::of(known.chain(client_secret));
    }

    pub(super) fn all(&self) -> Secrets {
        self.secrets.clone()
    }
}
