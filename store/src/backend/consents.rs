//! Consents of people to the use of a tool server in their name.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Database,
    statement::Statement as _,
    statements::consents::{
        ClaimRenewal, Consent as SelectConsent, ConsentsOf, EndConsent, FreeRenewal, GiveConsent,
        InsertRequest, RemoveOlderRequests, RemoveOverRequests, RenewConsent,
        Request as SelectRequest, TakeRequest,
    },
};
use crate::{
    api::{
        Consent, ConsentOf, ConsentRequest, Consents, GivenConsent, NewAuditEntry,
        NewConsentRequest, Result, TokenVersion,
    },
    columns::now,
};

/// The most rows that a call removes, because rows that are over must not pile up.
const REMOVED_AT_ONCE: i64 = 100;
/// The most servers in a list. An installation has far fewer servers.
const MAX_LISTED: i64 = 1000;

#[async_trait]
impl Consents for Database {
    async fn consent(&self, of: &ConsentOf) -> Result<Option<Consent>> {
        let select = SelectConsent {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
        };
        let query = select.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn consents_of(&self, tenant_id: &str, owner_id: &str) -> Result<Vec<GivenConsent>> {
        let select = ConsentsOf {
            tenant_id,
            owner: owner_id,
            row_limit: MAX_LISTED,
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn give_consent(
        &self,
        of: &ConsentOf,
        id: &str,
        sealed: &[u8],
        audit: &NewAuditEntry,
    ) -> Result<()> {
        let give = GiveConsent {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            consent_id: id,
            sealed,
            now: now(),
        };
        let query = give.query()?;
        self.audited(
            Some(audit),
            |()| true,
            async |connection| {
                query.execute(&mut *connection).await?;
                Ok(())
            },
        )
        .await
    }

    async fn claim_renewal(
        &self,
        of: &ConsentOf,
        tokens: &TokenVersion,
        time: Duration,
    ) -> Result<bool> {
        let now = now();
        let claim = ClaimRenewal {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            consent_id: &tokens.consent_id,
            version: tokens.version,
            until: after(now, time),
            now,
        };
        Ok(self.change(claim).await? == 1)
    }

    async fn renew_consent(
        &self,
        of: &ConsentOf,
        tokens: &TokenVersion,
        sealed: &[u8],
    ) -> Result<bool> {
        let renew = RenewConsent {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            consent_id: &tokens.consent_id,
            version: tokens.version,
            sealed,
        };
        Ok(self.change(renew).await? == 1)
    }

    async fn free_renewal(&self, of: &ConsentOf, tokens: &TokenVersion) -> Result<()> {
        let free = FreeRenewal {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            consent_id: &tokens.consent_id,
            version: tokens.version,
        };
        self.change(free).await.map(drop)
    }

    async fn lose_consent(&self, of: &ConsentOf, tokens: &TokenVersion) -> Result<()> {
        let end = EndConsent {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            consent_id: Some(&tokens.consent_id),
            version: Some(tokens.version),
        };
        self.change(end).await.map(drop)
    }

    async fn end_consent(&self, of: &ConsentOf, audit: &NewAuditEntry) -> Result<Option<Consent>> {
        let end = EndConsent {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            consent_id: None,
            version: None,
        };
        let query = end.query_as()?;
        self.audited(Some(audit), Option::is_some, async |connection| {
            Ok(query.fetch_optional(&mut *connection).await?)
        })
        .await
    }

    async fn begin_consent(&self, begun: &NewConsentRequest, keep: u32) -> Result<()> {
        let now = now();
        let of = &begun.of;
        let insert = InsertRequest {
            state_hash: &begun.state_hash,
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            server: &of.server,
            sealed: &begun.sealed,
            expires_at: after(now, begun.time),
            now,
        };
        let older = RemoveOlderRequests {
            tenant_id: &of.tenant_id,
            owner: &of.owner_id,
            keep: i64::from(keep),
            row_limit: REMOVED_AT_ONCE,
        };
        let over = RemoveOverRequests {
            now,
            row_limit: REMOVED_AT_ONCE,
        };
        // Each statement is right on its own, so a transaction would only hold rows for longer.
        self.change(over).await?;
        self.change(insert).await?;
        self.change(older).await.map(drop)
    }

    async fn begun_consent(&self, state_hash: &[u8]) -> Result<Option<ConsentRequest>> {
        let select = SelectRequest {
            state_hash,
            now: now(),
        };
        let query = select.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn take_consent(&self, state_hash: &[u8]) -> Result<Option<ConsentRequest>> {
        let take = TakeRequest {
            state_hash,
            now: now(),
        };
        let query = take.query_as()?;
        self.in_time(async { Ok(query.fetch_optional(&mut *self.single().await?).await?) })
            .await
    }
}

fn after(now: DateTime<Utc>, time: Duration) -> DateTime<Utc> {
    now.checked_add_signed(chrono::TimeDelta::from_std(time).unwrap_or(chrono::TimeDelta::MAX))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
