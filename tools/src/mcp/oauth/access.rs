//! The current access token. Tokens are kept in memory only, with one token per link to a server.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_untrusted::Secrets;
use tokio::time::Instant;

use super::{
    challenge::Challenge,
    error::AccessError,
    exchange,
    grant::{Grant, Issued},
    metadata::{self, TokenEndpoint},
    options::{OAuthOptions, TokenSource},
};
use crate::egress::Egress;

/// A token is renewed when a fifth of its lifetime is left, but at most this long before its end.
const RENEW_BEFORE_END: Duration = Duration::from_secs(60);
/// The pause after a failure: the first and the longest pause. Callers within the pause get the error of the failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The number of tokens that are cut out of the server's messages: the current token and the tokens before it.
const KNOWN_TOKENS: usize = 4;

/// Provides the token for requests to a server.
pub(in crate::mcp) struct Access {
    options: OAuthOptions,
    tenant_id: Option<String>,
    egress: Egress,
    state: Mutex<State>,
    /// Held by the caller that requests a token; further callers wait.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// The last tokens, with the newest at the end.
    given: Vec<String>,
    count: u64,
    /// The client's secret and the last tokens.
    secrets: Secrets,
    /// The challenge of the server's last refusal.
    challenge: Option<Challenge>,
    /// The grant for requesting tokens, after discovery.
    grant: Option<Grant>,
    failure: Option<AccessError>,
    failures: u32,
    paused_until: Option<Instant>,
}

/// A token. Tokens from an identical response are equal.
#[derive(Clone)]
pub(in crate::mcp) struct Token {
    value: String,
    number: u64,
    times: Option<Times>,
}

#[derive(Clone, Copy)]
struct Times {
    renew: Instant,
    end: Instant,
}

impl Token {
    pub(in crate::mcp) fn value(&self) -> &str {
        &self.value
    }

    fn is_fresh(&self) -> bool {
        self.times.is_none_or(|times| Instant::now() < times.renew)
    }

    fn has_ended(&self) -> bool {
        self.times.is_some_and(|times| Instant::now() >= times.end)
    }
}

impl Access {
    pub(in crate::mcp) fn new(
        options: OAuthOptions,
        tenant_id: Option<String>,
        egress: Egress,
    ) -> Self {
        Self {
            options,
            tenant_id,
            egress,
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the token for a request. Returns `None` while the source of tokens is unknown: the server then refuses
    /// the request, and its challenge names the source.
    pub(in crate::mcp) async fn token(&self) -> Result<Option<Token>, AccessError> {
        let held = self.state().token.clone();
        let Some(token) = held else {
            let is_known = matches!(self.options.issuer, TokenSource::Endpoint { .. })
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
    pub(in crate::mcp) async fn after_refusal(
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
    pub(in crate::mcp) fn refused_anew(&self, token: &Token) -> AccessError {
        let mut state = self.state();
        if is_same(state.token.as_ref(), Some(token)) {
            (state.token, state.grant) = (None, None);
            state.fail(AccessError::Token);
        }
        AccessError::Token
    }

    /// Records that the server accepts the token.
    pub(in crate::mcp) fn accepted(&self, token: Option<&Token>) {
        let mut state = self.state();
        if token.is_some() && is_same(state.token.as_ref(), token) {
            state.failures = 0;
        }
    }

    /// Returns the reason for a missing token, if the last request failed.
    pub(in crate::mcp) fn failure(&self) -> Option<AccessError> {
        self.state().failure.clone()
    }

    /// Returns the secrets that the server must not repeat.
    pub(in crate::mcp) fn secrets(&self) -> Secrets {
        self.state().secrets.clone()
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
            Ok((issued, client_secret)) => Ok(self.state().hold(issued, &client_secret, asked_at)),
            Err(error) => {
                tracing::warn!(
                    server = %self.options.server.origin().ascii_serialization(),
                    tenant_id = self.tenant_id,
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

    async fn request(&self) -> Result<(Issued, String), AccessError> {
        let known = self.state().grant.clone();
        let grant = match known {
            Some(grant) => grant,
            None => self.discover().await?,
        };
        let tenant_id = self.tenant_id.as_deref();
        let id = self.options.client_id.read(tenant_id).await?;
        let secret = self.options.client_secret.read(tenant_id).await?;
        let issued = grant.ask(&self.egress, &id, &secret).await?;
        self.state().grant = Some(grant);
        Ok((issued, secret))
    }

    /// Discovers how to request tokens.
    async fn discover(&self) -> Result<Grant, AccessError> {
        let challenge = self.state().challenge.clone().unwrap_or_default();
        let server = &self.options.server;
        let (endpoint, resource, of_server) = match &self.options.issuer {
            TokenSource::Endpoint { url, method } => {
                let endpoint = TokenEndpoint {
                    url: url.clone(),
                    method: *method,
                };
                (endpoint, server.to_string(), Vec::new())
            }
            TokenSource::Issuer(issuer) => {
                let resource = self.resource(&challenge, issuer).await?;
                let endpoint = self.endpoint(issuer).await?;
                (endpoint, resource.id, resource.scopes)
            }
        };
        let scopes = self.options.scopes.clone();
        Ok(Grant {
            endpoint,
            resource,
            scopes: scopes.or(challenge.scopes).unwrap_or(of_server),
        })
    }

    /// Returns the server's metadata: from the URL in its challenge, or else from the standard's URLs.
    async fn resource(
        &self,
        challenge: &Challenge,
        issuer: &str,
    ) -> Result<metadata::Resource, AccessError> {
        let server = &self.options.server;
        let candidates = match &challenge.resource_metadata {
            Some(candidate) => vec![metadata::checked_url("`resource_metadata`", candidate)?],
            None => metadata::urls_of_resource(server),
        };
        for candidate in &candidates {
            if let Some(body) = exchange::document(&self.egress, candidate, Some(server)).await? {
                return metadata::resource(&body, server, issuer);
            }
        }
        Err(AccessError::Metadata(
            "the server has no metadata of a protected resource (RFC 9728). Write the token endpoint into `token_url`"
                .to_owned(),
        ))
    }

    async fn endpoint(&self, issuer: &str) -> Result<TokenEndpoint, AccessError> {
        let url = metadata::checked_url("`issuer`", issuer)?;
        for candidate in metadata::urls_of_issuer(&url) {
            if let Some(body) = exchange::document(&self.egress, &candidate, None).await? {
                return metadata::token_endpoint(&body, issuer);
            }
        }
        Err(AccessError::Metadata(
            "the authorization server has no metadata (RFC 8414, OpenID Discovery). Check `issuer`, or write `token_url`"
                .to_owned(),
        ))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, issued: Issued, client_secret: &str, asked_at: Instant) -> Token {
        self.count += 1;
        self.given.push(issued.value.clone());
        if self.given.len() > KNOWN_TOKENS {
            self.given.remove(0);
        }
        let told = self.given.iter().map(String::as_str);
        self.secrets = Secrets::of(told.chain([client_secret]));
        let times = issued.lifetime.map(|lifetime| Times {
            renew: asked_at + lifetime - RENEW_BEFORE_END.min(lifetime / 5),
            end: asked_at + lifetime,
        });
        let token = Token {
            value: issued.value,
            number: self.count,
            times,
        };
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

fn is_same(one: Option<&Token>, other: Option<&Token>) -> bool {
    one.map(|token| token.number) == other.map(|token| token.number)
}
