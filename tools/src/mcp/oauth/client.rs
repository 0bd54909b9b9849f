//! The access token of the installation (`client_credentials`). Tokens are kept in memory only, with one token per link to a
//! server.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_untrusted::Secrets;
use tokio::time::Instant;

use super::{
    challenge::Challenge,
    discovery::Discovery,
    error::AccessError,
    grant::{Grant, Issued, Right},
    options::{OAuthOptions, TokenSource},
    token::{KnownSecrets, Times, Token, is_same},
};
use crate::egress::Egress;

/// The pause after a failure: the first and the longest pause. Callers within the pause get the error of the failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Provides the token for requests to a server.
pub(in crate::mcp) struct ClientAccess {
    discovery: Discovery,
    state: Mutex<State>,
    /// Held by the caller that requests a token; further callers wait.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    count: u64,
    secrets: KnownSecrets,
    /// The challenge of the server's last refusal.
    challenge: Option<Challenge>,
    /// The grant for requesting tokens, after discovery.
    grant: Option<Grant>,
    failure: Option<AccessError>,
    failures: u32,
    paused_until: Option<Instant>,
}

impl ClientAccess {
    pub(super) fn new(options: OAuthOptions, tenant_id: Option<String>, egress: Egress) -> Self {
        Self {
            discovery: Discovery {
                options,
                tenant_id,
                egress,
            },
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the token for a request. Returns `None` while the source of tokens is unknown: the server then refuses
    /// the request, and its challenge names the source.
    pub(super) async fn token(&self) -> Result<Option<Token>, AccessError> {
        let held = self.state().token.clone();
        let Some(token) = held else {
            let is_known = matches!(self.discovery.options.issuer, TokenSource::Endpoint { .. })
                || self.state().challenge.is_some();
            return if is_known {
                self.ask_after(None).await.map(Some)
            } else {
                Ok(None)
            };
        };
        if token.is_fresh() {
            return Ok(Some(token));
        }
        if token.has_ended() {
            return self.ask_after(Some(&token)).await.map(Some);
        }
        // The token is still valid. One caller renews the token. The others use the old token meanwhile, and continue
        // to use it if the renewal fails.
        match self.asking.try_lock() {
            Ok(asking) => {
                let renewed = self.ask(Some(&token), &asking).await;
                Ok(Some(renewed.unwrap_or(token)))
            }
            Err(_) => Ok(Some(token)),
        }
    }

    /// Returns the token after a refused token. A new token is requested once, however many callers were refused.
    pub(super) async fn after_refusal(
        &self,
        refused: Option<&Token>,
        challenge: Challenge,
    ) -> Result<Token, AccessError> {
        {
            let mut state = self.state();
            // An empty challenge does not replace an earlier challenge.
            if state.challenge.is_none() || challenge != Challenge::default() {
                state.challenge = Some(challenge);
            }
        }
        self.ask_after(refused).await
    }

    /// Records that the server has refused a new token. The next request asks for another token, after a pause.
    pub(super) fn refused_anew(&self, token: &Token) -> AccessError {
        let mut state = self.state();
        if is_same(state.token.as_ref(), Some(token)) {
            (state.token, state.grant) = (None, None);
            state.fail(AccessError::Token);
        }
        AccessError::Token
    }

    /// Records that the server accepts the token.
    pub(super) fn accepted(&self, token: Option<&Token>) {
        let mut state = self.state();
        if token.is_some() && is_same(state.token.as_ref(), token) {
            state.failures = 0;
        }
    }

    /// Returns the reason for a missing token, if the last request failed.
    pub(super) fn failure(&self) -> Option<AccessError> {
        self.state().failure.clone()
    }

    /// Returns the secrets that the server must not repeat.
    pub(super) fn secrets(&self) -> Secrets {
        self.state().secrets.all()
    }

    async fn ask_after(&self, old: Option<&Token>) -> Result<Token, AccessError> {
        let asking = self.asking.lock().await;
        self.ask(old, &asking).await
    }

    /// Requests a token, unless a concurrent caller has already received a new token or has just failed.
    async fn ask(
        &self,
        old: Option<&Token>,
        _asking: &tokio::sync::MutexGuard<'_, ()>,
    ) -> Result<Token, AccessError> {
        {
            let state = self.state();
            if let Some(token) = &state.token
                && !is_same(Some(token), old)
                && !token.has_ended()
            {
                return Ok(token.clone());
            }
            if let (Some(failure), Some(until)) = (&state.failure, state.paused_until)
                && Instant::now() < until
            {
                return Err(failure.clone());
            }
        }
        let asked_at = Instant::now();
        match self.request().await {
            Ok((issued, client_secret)) => {
                Ok(self
                    .state()
                    .hold(issued, client_secret.as_deref(), asked_at))
            }
            Err(error) => {
                tracing::warn!(
                    server = %self.discovery.options.server.origin().ascii_serialization(),
                    tenant_id = self.discovery.tenant_id,
                    code = error.code(),
                    %error,
                    "a token for an MCP server is missing"
                );
                let mut state = self.state();
                state.grant = None;
                state.fail(error.clone());
                Err(error)
            }
        }
    }

    async fn request(&self) -> Result<(Issued, Option<String>), AccessError> {
        let known = self.state().grant.clone();
        let grant = if let Some(grant) = known {
            grant
        } else {
            let challenge = self.state().challenge.clone().unwrap_or_default();
            self.discovery.run(&challenge).await?.grant
        };
        let client = self.discovery.client().await?;
        let egress = &self.discovery.egress;
        let issued = grant.ask(egress, &client, Right::Client).await?;
        self.state().grant = Some(grant);
        Ok((issued, client.secret))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, issued: Issued, client_secret: Option<&str>, asked_at: Instant) -> Token {
        self.count += 1;
        self.secrets.add([issued.value.as_str()], client_secret);
        let times = issued
            .lifetime
            .map(|lifetime| Times::of(asked_at, lifetime));
        let token = Token::new(issued.value, self.count, times);
        self.token = Some(token.clone());
        (self.failure, self.paused_until) = (None, None);
        token
    }

    fn fail(&mut self, error: AccessError) {
        self.failures = self.failures.saturating_add(1);
        let doubled = MIN_PAUSE.saturating_mul(1 << (self.failures - 1).min(6));
        self.paused_until = Some(Instant::now() + doubled.min(MAX_PAUSE));
        self.failure = Some(error);
    }
}
