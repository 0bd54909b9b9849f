//! The tokens of a person's consent: kept in the store in sealed form, and read for each request. Therefore every worker has
//! the newest tokens, and an ended consent ends at once.

use std::{fmt, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_store::{ConsentOf, NewAuditEntry, StoreError, TokenVersion};
use serde::{Deserialize, Serialize};

use super::{
    grant::Issued,
    options::{OAuthOptions, TokenSource},
    token::before_end,
};
use crate::consents::{ConsentStoreError, PersonConsents};

/// The time in which one worker renews tokens. Discovery and the request have 10 s each. The other workers wait.
pub(super) const RENEWAL_TIME: Duration = Duration::from_secs(40);
/// The use of a consent's sealed tokens.
const OF_TOKENS: &str = "tokens";

/// The tokens of a person.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PersonTokens {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// The end of the access token, in milliseconds of the Unix epoch.
    ends_at: Option<i64>,
    /// When the access token is renewed.
    renew_at: Option<i64>,
    /// The server and the source of tokens at the time of the consent. Tokens are sent to no other server and source.
    server: String,
    source: String,
}

impl fmt::Debug for PersonTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonTokens(…)")
    }
}

impl PersonTokens {
    pub(super) fn of(issued: Issued, options: &OAuthOptions, asked_at: DateTime<Utc>) -> Self {
        let at = |time: Duration| {
            let time = TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
            let at = asked_at.checked_add_signed(time);
            at.unwrap_or(DateTime::<Utc>::MAX_UTC).timestamp_millis()
        };
        let lifetime = issued.lifetime;
        Self {
            access_token: issued.value,
            refresh_token: issued.refresh,
            ends_at: lifetime.map(at),
            renew_at: lifetime.map(|lifetime| at(lifetime.saturating_sub(before_end(lifetime)))),
            server: options.server.to_string(),
            source: source(options),
        }
    }

    /// True when the tokens are for the configured server, and from the configured source.
    pub(super) fn fits(&self, options: &OAuthOptions) -> bool {
        self.server == options.server.as_str() && self.source == source(options)
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.renew_at
            .is_none_or(|at| Utc::now().timestamp_millis() < at)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ends_at
            .is_some_and(|at| Utc::now().timestamp_millis() >= at)
    }
}

/// Returns the source of tokens as a text.
fn source(options: &OAuthOptions) -> String {
    match &options.issuer {
        TokenSource::Issuer(issuer) => issuer.clone(),
        TokenSource::Endpoint { url, .. } => url.to_string(),
    }
}

/// A consent with its tokens.
pub(super) struct Held {
    pub(super) version: TokenVersion,
    /// `None`: no key of the ring opens the tokens.
    pub(super) tokens: Option<PersonTokens>,
}

/// Returns the consent of a person with its tokens.
pub(super) async fn held(
    consents: &PersonConsents,
    of: &ConsentOf,
) -> Result<Option<Held>, StoreError> {
    let consent = consents.rows().consent(of).await?;
    Ok(consent.map(|consent| Held {
        tokens: opened(consents, of, &consent.sealed),
        version: consent.tokens(),
    }))
}

/// Returns the tokens, or `None` when no key opens them: a new consent is needed then.
pub(super) fn opened(
    consents: &PersonConsents,
    of: &ConsentOf,
    sealed: &[u8],
) -> Option<PersonTokens> {
    let opened = consents.open(of, OF_TOKENS, sealed);
    let warn = |error: &ConsentStoreError| {
        tracing::warn!(server = of.server, tenant_id = of.tenant_id, %error, "the tokens of a consent are unusable");
    };
    opened.inspect_err(warn).ok()
}

/// Seals tokens for their person and server.
pub(super) fn sealed(
    consents: &PersonConsents,
    of: &ConsentOf,
    tokens: &PersonTokens,
) -> Result<Vec<u8>, ConsentStoreError> {
    consents.seal(of, OF_TOKENS, tokens)
}

/// Stores the tokens of a new consent.
pub(super) async fn give(
    consents: &PersonConsents,
    of: &ConsentOf,
    tokens: &PersonTokens,
    audit: &NewAuditEntry,
) -> Result<(), ConsentStoreError> {
    let sealed = sealed(consents, of, tokens)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    Ok(consents
        .rows()
        .give_consent(of, &id, &sealed, audit)
        .await?)
}
