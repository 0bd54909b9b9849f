//! The end of credentials in use: open streams end with the credential, and this gateway forgets a credential that an admin
//! ends.

use std::sync::Arc;

use chrono::Utc;
use everturn_store::Access;
use futures::future::BoxFuture;

use super::{
    authenticator::Authenticator,
    caller::{Caller, Credential},
};

impl Authenticator {
    /// Forgets a revoked key, and thereby makes this gateway refuse the key at once.
    pub(crate) fn forget_key(&self, id: &str) {
        self.keys.forget(id);
    }

    /// Forgets the state of an owner, and thereby makes a change take effect on this gateway at once.
    pub(crate) fn forget_owner(&self, access: &Access) {
        self.keys.forget_owner(access);
        self.owners.forget(access);
    }

    /// Resolves when the caller's credential has expired or was revoked, or when an admin ended the sign-in or refuses
    /// the owner. Open streams then end.
    pub(crate) fn end_of(&self, caller: &Caller) -> BoxFuture<'static, ()> {
        let (keys, owners) = (Arc::clone(&self.keys), Arc::clone(&self.owners));
        let (caller, pause) = (caller.clone(), self.config.stream_check);
        Box::pin(async move {
            loop {
                let rest = caller
                    .expires_at
                    .map(|end| (end - Utc::now()).to_std().unwrap_or_default());
                if rest.is_some_and(|rest| rest.is_zero()) {
                    return;
                }
                tokio::time::sleep(rest.map_or(pause, |rest| rest.min(pause))).await;
                // While the store is away, a revocation is unknown, and the stream goes on.
                let has_ended = match &caller.credential {
                    Credential::Anonymous => std::future::pending().await,
                    Credential::Key(id) | Credential::Session(id) => {
                        matches!(keys.holds(id).await, Ok(false))
                    }
                    Credential::Token => matches!(owners.refusal(&caller).await, Ok(Some(_))),
                };
                if has_ended {
                    return;
                }
            }
        })
    }
}
