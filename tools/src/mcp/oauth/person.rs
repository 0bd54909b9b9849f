//! The access token of a person who has consented. Each request reads the token from the store.
//!
//! One worker of all renews tokens that end, because a refresh token of many authorization servers is good for one use. The
//! others wait for the renewed tokens.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::Utc;
use everturn_store::{ConsentOf, StoreError};
use everturn_untrusted::Secrets;
use tokio::time::{Instant, sleep};

use super::{
    discovery::Discovery,
    error::AccessError,
    grant::Right,
    options::OAuthOptions,
    token::{KnownSecrets, Token},
    tokens::{self, Held, PersonTokens, RENEWAL_TIME},
};
use crate::{consents::PersonConsents, egress::Egress};

/// The pause between two looks for the tokens that another worker renews.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// A person and the person's consent.
#[derive(Clone)]
pub(in crate::mcp) struct Person {
    pub(in crate::mcp) of: ConsentOf,
    /// A later consent has another id. Its tokens may be for another account at the server.
    pub(in crate::mcp) consent_id: String,
    pub(in crate::mcp) consents: Arc<PersonConsents>,
}

/// Provides the tokens of a person.
pub(in crate::mcp) struct PersonAccess {
    discovery: Discovery,
    person: Person,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    secrets: KnownSecrets,
    failure: Option<AccessError>,
}

impl PersonAccess {
    pub(super) fn new(options: OAuthOptions, egress: Egress, person: Person) -> Self {
        Self {
            discovery: Discovery {
                options,
                tenant_id: Some(person.of.tenant_id.clone()),
                egress,
            },
            person,
            state: Mutex::default(),
        }
    }

    pub(super) async fn token(&self) -> Result<Token, AccessError> {
        let (held, tokens) = self.held().await?;
        if tokens.is_fresh() {
            return Ok(self.given(&held, &tokens));
        }
        if tokens.refresh_token.is_none() && !tokens.has_ended() {
            return Ok(self.given(&held, &tokens));
        }
        // A token that is still valid serves while another worker renews it, and when the renewal fails.
        let renewed = self
            .renewed(held.version.version, !tokens.has_ended())
            .await;
        match renewed {
            Ok(token) => Ok(token),
            Err(error) if tokens.has_ended() || matches!(error, AccessError::Consent) => {
                Err(self.noted(error))
            }
            Err(_) => Ok(self.given(&held, &tokens)),
        }
    }

    pub(super) async fn after_refusal(
        &self,
        refused: Option<&Token>,
    ) -> Result<Token, AccessError> {
        let version = refused.and_then(|token| i64::try_from(token.number()).ok());
        let renewed = self.renewed(version.unwrap_or_default(), false).await;
        renewed.map_err(|error| self.noted(error))
    }

    /// Records a failure, for callers without a connection.
    pub(super) fn noted(&self, error: AccessError) -> AccessError {
        let of = &self.person.of;
        tracing::warn!(
            server = of.server,
            tenant_id = of.tenant_id,
            code = error.code(),
            %error,
            "a person's token for an MCP server is missing"
        );
        self.state().failure = Some(error.clone());
        error
    }

    pub(super) fn accepted(&self) {
        self.state().failure = None;
    }

    pub(super) fn failure(&self) -> Option<AccessError> {
        self.state().failure.clone()
    }

    pub(super) fn secrets(&self) -> Secrets {
        self.state().secrets.all()
    }

    /// Returns the person's consent with its tokens.
    async fn held(&self) -> Result<(Held, PersonTokens), AccessError> {
        let held = tokens::held(&self.person.consents, &self.person.of).await;
        let held = held.map_err(|error| unavailable(&error))?;
        let held = held.filter(|held| held.version.consent_id == self.person.consent_id);
        let mut held = held.ok_or(AccessError::Consent)?;
        let tokens = held.tokens.take();
        let tokens = tokens.filter(|tokens| tokens.fits(&self.discovery.options));
        Ok((held, tokens.ok_or(AccessError::Consent)?))
    }

    fn given(&self, held: &Held, tokens: &PersonTokens) -> Token {
        let known = [Some(&tokens.access_token), tokens.refresh_token.as_ref()];
        let known = known.into_iter().flatten().map(String::as_str);
        self.state().secrets.add(known, None);
        let number = u64::try_from(held.version.version).unwrap_or_default();
        Token::new(tokens.access_token.clone(), number, None)
    }

    /// Returns tokens that are newer than the version. `is_valid`: the caller does not wait for another worker.
    async fn renewed(&self, version: i64, is_valid: bool) -> Result<Token, AccessError> {
        let until = Instant::now() + RENEWAL_TIME;
        loop {
            let (held, tokens) = self.held().await?;
            if held.version.version > version {
                return Ok(self.given(&held, &tokens));
            }
            let consents = &self.person.consents;
            let of = &self.person.of;
            let claimed = consents
                .rows()
                .claim_renewal(of, &held.version, RENEWAL_TIME);
            if claimed.await.map_err(|error| unavailable(&error))? {
                return self.renew(&held, tokens).await;
            }
            if is_valid {
                return Ok(self.given(&held, &tokens));
            }
            if Instant::now() >= until {
                let why = "another worker has not renewed the tokens in time";
                return Err(AccessError::Unavailable(why.to_owned()));
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    /// Renews the tokens. Only one worker calls the function at a time.
    async fn renew(&self, held: &Held, old: PersonTokens) -> Result<Token, AccessError> {
        let (consents, of) = (&self.person.consents, &self.person.of);
        let rows = consents.rows();
        let lost = async || {
            let lost = rows.lose_consent(of, &held.version).await;
            lost.map_err(|error| unavailable(&error))
        };
        let Some(refresh_token) = &old.refresh_token else {
            lost().await?;
            return Err(AccessError::Consent);
        };
        let mut renewed = match self.asked(refresh_token).await {
            Ok(renewed) => renewed,
            Err(AccessError::Request("invalid_grant")) => {
                lost().await?;
                return Err(AccessError::Consent);
            }
            Err(error) => {
                // A token that is still valid serves until the time of the renewal is over: an authorization server that is
                // away is not asked for each request.
                if old.has_ended() {
                    let freed = rows.free_renewal(of, &held.version).await;
                    freed.map_err(|error| unavailable(&error))?;
                }
                return Err(error);
            }
        };
        // Without a new refresh token, the old one stays good.
        renewed.refresh_token = renewed.refresh_token.or(old.refresh_token);
        let sealed = tokens::sealed(consents, of, &renewed);
        let sealed = sealed.map_err(|error| AccessError::Unavailable(error.to_string()))?;
        let saved = rows.renew_consent(of, &held.version, &sealed).await;
        if !saved.map_err(|error| unavailable(&error))? {
            return Err(AccessError::Consent);
        }
        let mut version = held.version.clone();
        version.version += 1;
        let held = Held {
            version,
            tokens: None,
        };
        Ok(self.given(&held, &renewed))
    }

    async fn asked(&self, refresh_token: &str) -> Result<PersonTokens, AccessError> {
        let discovery = &self.discovery;
        let discovered = discovery.run(&discovery.challenge().await?).await?;
        let client = discovery.client().await?;
        self.state().secrets.add([], client.secret.as_deref());
        let asked_at = Utc::now();
        let right = Right::Refresh(refresh_token);
        let issued = discovered
            .grant
            .ask(&discovery.egress, &client, right)
            .await?;
        Ok(PersonTokens::of(issued, &discovery.options, asked_at))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(error: &StoreError) -> AccessError {
    AccessError::Unavailable(format!("the store of consents does not answer: {error}"))
}
