//! Who is asking, as handlers see it.

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::{DateTime, Utc};
use everturn_proto::words::{AuditActorKind, DEFAULT_TENANT};
use everturn_store::{Access, ApiKey, AuditActor, KeyKind};

use super::refusal::AuthRefusal;
use crate::{
    config::{Scope, Scopes},
    http::{
        audit::{Doer, Source},
        problem::Problem,
    },
};

/// Who is asking. Put into the request by [`authenticate`](super::authenticate); a handler takes it as an argument.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What they may see. It is an argument of every query of the store.
    pub access: Access,
    /// What they may do. Reading and writing are checked before the handler.
    pub scopes: Scopes,
    /// When their credential ends, and with it their streams; `None`: not by time.
    pub expires_at: Option<DateTime<Utc>>,
    /// How they proved it.
    pub credential: Credential,
    /// Who they are, for what asks whether two callers are the same: the owner, or else the key, also in its sessions.
    /// `None`: nobody is known.
    pub principal: Option<String>,
    /// Where the request comes from.
    pub source: Source,
}

/// How a caller proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// They did not: this gateway asks for no credential.
    Anonymous,
    /// They used the key with this id.
    Key(String),
    /// They used the browser session with this id.
    Session(String),
    /// They used a token of the identity provider.
    Token,
}

impl Caller {
    /// Makes the caller who asks without a credential, where none is required.
    pub(super) fn anonymous() -> Self {
        Self {
            access: Access::tenant(DEFAULT_TENANT),
            scopes: Scopes::of_users(),
            expires_at: None,
            credential: Credential::Anonymous,
            principal: None,
            source: Source::default(),
        }
    }

    /// Makes the caller of a key or session.
    pub(super) fn of_key(key: &ApiKey) -> Self {
        let key_id = || key.parent_id.clone().unwrap_or_else(|| key.id.clone());
        Self {
            principal: Some(key.access.owner_id.clone().unwrap_or_else(key_id)),
            access: key.access.clone(),
            scopes: Scopes::parse(&key.scopes),
            expires_at: key.expires_at,
            source: Source::default(),
            credential: match key.kind {
                KeyKind::Key => Credential::Key(key.id.clone()),
                KeyKind::Session => Credential::Session(key.id.clone()),
            },
        }
    }

    /// Refuses a caller who may not do this.
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
                "a route that asks for its caller is not behind `authenticate`"
            );
            Problem::internal()
        })
    }
}
