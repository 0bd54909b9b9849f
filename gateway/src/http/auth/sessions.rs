//! Opens and ends browser sessions.

use axum::http::{HeaderMap, HeaderValue};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{KeyKind, KeyMaker, NewKey, SessionsOf};

use super::{
    authenticator::Authenticator,
    caller::{Caller, Credential},
    cookie,
    refusal::AuthRefusal,
    secret::Secret,
};
use crate::{
    http::{audit::WithDetails, problem::Problem},
    listed::time,
};

/// The most ended or surplus sessions that opening a session removes. The number is above one, because ended sessions
/// must not pile up.
const REMOVED_AT_ONCE: u32 = 100;

/// An opened session.
pub(crate) struct OpenSession {
    pub(crate) session: Secret,
    pub(crate) lifetime: TimeDelta,
}

impl Authenticator {
    /// Makes the header that tells a browser to keep a session.
    pub(crate) fn keep(&self, headers: &HeaderMap, open: &OpenSession) -> Option<HeaderValue> {
        cookie::keep(headers, &self.config, &open.session, open.lifetime)
    }

    /// Makes the header that tells a browser to forget its session.
    pub(crate) fn forget(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        cookie::forget(headers, &self.config)
    }

    /// Opens a session with the caller's rights. The session ends no later than the caller's credential.
    pub(crate) async fn open_session(&self, caller: &Caller) -> Result<OpenSession, AuthRefusal> {
        let parent_id = match &caller.credential {
            Credential::Key(id) => Some(id.clone()),
            Credential::Token => None,
            // A session that opens sessions could be prolonged for ever.
            Credential::Session(_) | Credential::Anonymous => {
                return Err(AuthRefusal::Invalid(
                    "A session is opened with a key or a token in the header Authorization.",
                ));
            }
        };
        let now = Utc::now();
        let lifetime = TimeDelta::from_std(self.config.session_lifetime).unwrap_or(TimeDelta::MAX);
        let longest = now
            .checked_add_signed(lifetime)
            .unwrap_or(DateTime::<Utc>::MAX_UTC);
        let expires_at = caller.expires_at.map_or(longest, |end| end.min(longest));
        let session = Secret::generate(KeyKind::Session).map_err(|error| {
            tracing::error!(%error, "the system gives no random bytes");
            AuthRefusal::Unknown(Problem::internal())
        })?;
        let store = self.keys.store();
        store.remove_ended_sessions(now, REMOVED_AT_ONCE).await?;
        let new = NewKey {
            id: session.id().to_owned(),
            kind: KeyKind::Session,
            parent_id,
            secret_hash: session.hash(),
            access: caller.access.clone(),
            scopes: caller.scopes.to_string(),
            name: String::new(),
            made_by: KeyMaker::default(),
            expires_at: Some(expires_at),
            // A gateway may accept an ended token for some seconds; the session then has ended, too.
            signed_in_at: caller.signed_in_at,
        };
        let (parent_id, access) = (new.parent_id.clone(), new.access.clone());
        let target = (AuditTargetKind::Session, session.id());
        let entry = self
            .audit
            .entry(caller, AuditAction::SessionOpened, target)
            .with("expires_at", time(expires_at));
        store.create_key(new, Some(&entry)).await?;
        let of = match &parent_id {
            Some(id) => SessionsOf::Key(id),
            None => SessionsOf::Owner(&access),
        };
        let keep = self.config.max_sessions.get();
        store.end_oldest_sessions(of, keep, REMOVED_AT_ONCE).await?;
        Ok(OpenSession {
            session,
            lifetime: expires_at - now,
        })
    }

    /// Ends the caller's session. Does nothing for a caller without a session.
    pub(crate) async fn end_session(&self, caller: &Caller) -> Result<(), AuthRefusal> {
        if let Credential::Session(id) = &caller.credential {
            let target = (AuditTargetKind::Session, id.as_str());
            let entry = self.audit.entry(caller, AuditAction::SessionEnded, target);
            self.keys.store().revoke_key(id, Some(&entry)).await?;
            self.keys.forget(id);
        }
        Ok(())
    }
}
