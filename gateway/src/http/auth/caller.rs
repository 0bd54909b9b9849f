//! The caller of a request, as handlers see it.

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::{DateTime, Utc};
use everturn_proto::words::{AuditActorKind, DEFAULT_TENANT};
use everturn_store::{Access, ApiKey, AuditActor, KeyKind, KeyMaker};

use super::refusal::AuthRefusal;
use crate::{
    config::{Scope, Scopes},
    http::{
        audit::{Doer, Source},
        problem::Problem,
    },
};

/// The caller of a request. [`authenticate`](super::authenticate) adds the caller to the request, and a handler takes
/// the caller as an argument.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The caller's access: the tenant, and the owner if any. Every query of the store takes the access as an argument.
    pub access: Access,
    /// The caller's scopes. Middleware checks `read` and `write` before the handler runs.
    pub scopes: Scopes,
    /// When the caller's credential expires and the caller's streams end; `None`: never.
    pub expires_at: Option<DateTime<Utc>>,
    /// When the token was issued, or the token behind the session. `None`: the caller has a key, or no credential.
    pub signed_in_at: Option<DateTime<Utc>>,
    /// The kind of the caller's credential.
    pub credential: Credential,
    /// The identity of the caller for comparisons of callers, such as four eyes: the owner, or else the key. A session
    /// has the identity of its key. `None`: the caller is unknown.
    pub principal: Option<String>,
    /// The key of the caller: the credential itself, or the key that opened the session. `None`: the caller has no key.
    pub key_id: Option<String>,
    /// The source of the request.
    pub source: Source,
}

/// The credential of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// No credential, on a gateway that requires no credential.
    Anonymous,
    /// The key with the id.
    Key(String),
    /// The browser session with the id.
    Session(String),
    /// A token of the identity provider.
    Token,
}

impl Caller {
    /// Makes the caller without a credential, for a gateway that requires no credential.
    pub(super) fn anonymous(scopes: Scopes) -> Self {
        Self {
            access: Access::tenant(DEFAULT_TENANT),
            scopes,
            expires_at: None,
            signed_in_at: None,
            credential: Credential::Anonymous,
            principal: None,
            key_id: None,
            source: Source::default(),
        }
    }

    /// Makes the caller of a key or session.
    pub(super) fn of_key(key: &ApiKey) -> Self {
        let key_id = match key.kind {
            KeyKind::Key => Some(key.id.clone()),
            KeyKind::Session => key.parent_id.clone(),
        };
        let unowned = || key_id.clone().unwrap_or_else(|| key.id.clone());
        Self {
            principal: Some(key.access.owner_id.clone().unwrap_or_else(unowned)),
            key_id,
            access: key.access.clone(),
            scopes: Scopes::parse(&key.scopes),
            expires_at: key.expires_at,
            signed_in_at: match key.kind {
                KeyKind::Key => None,
                KeyKind::Session => Some(key.signed_in_at),
            },
            source: Source::default(),
            credential: match key.kind {
                KeyKind::Key => Credential::Key(key.id.clone()),
                KeyKind::Session => Credential::Session(key.id.clone()),
            },
        }
    }

    /// Returns the person behind the credential: the owner of a key or session, or the subject of a token. `None` for a
    /// credential without an owner, because anybody may have the key.
    pub(crate) fn person(&self) -> Option<&str> {
        let principal = self.principal.as_deref();
        principal.filter(|principal| self.access.owner_id.as_deref() == Some(*principal))
    }

    /// Returns the caller as the maker of a key or session: the caller's key, or the subject of the caller's token.
    pub(crate) fn maker(&self) -> KeyMaker {
        KeyMaker {
            key: self.key_id.clone(),
            subject: match (&self.key_id, &self.credential) {
                (None, Credential::Token | Credential::Session(_)) => self.access.owner_id.clone(),
                _ => None,
            },
        }
    }

    /// Refuses a caller without the scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), AuthRefusal> {
        if self.scopes.has(scope) {
            Ok(())
        } else {
            Err(AuthRefusal::Scope(scope))
        }
    }
}

impl Doer for Caller {
    fn tenant_id(&self) -> &str {
        &self.access.tenant_id
    }

    fn actor(&self) -> AuditActor {
        let (kind, id) = match &self.credential {
            Credential::Anonymous => (AuditActorKind::Anonymous, None),
            Credential::Key(id) => (AuditActorKind::Key, Some(id)),
            Credential::Session(id) => (AuditActorKind::Session, Some(id)),
            Credential::Token => (AuditActorKind::Token, self.access.owner_id.as_ref()),
        };
        AuditActor {
            kind,
            id: id.cloned(),
        }
    }

    fn principal_of_session(&self) -> Option<&str> {
        match &self.credential {
            Credential::Session(_) => self.principal.as_deref(),
            Credential::Anonymous | Credential::Key(_) | Credential::Token => None,
        }
    }

    fn source(&self) -> &Source {
        &self.source
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!(
                path = parts.uri.path(),
                "a route with a caller is not behind `authenticate`"
            );
            Problem::internal()
        })
    }
}
