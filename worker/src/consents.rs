//! Consents of people to the use of MCP servers in their names: the store, the keys of `[codec]`, and the servers of the
//! configuration, for workers and gateways.

use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use everturn_codec::KeyRing;
use everturn_config::Config;
use everturn_gateway::{ConsentRefusal, ToolConsents};
use everturn_store::{
    ConsentOf, ConsentRequest, Consents, GivenConsent, NewAuditEntry, StoreError,
};
use everturn_tools::{
    ConsentStoreError, PersonConsents, Sealer,
    egress::Egress,
    mcp::{ConsentAnswer, ConsentError, ConsentServer, state_hash},
};

/// Seals with the keys of `[codec]`.
struct RingSealer(KeyRing);

impl Sealer for RingSealer {
    fn seal(&self, of: &[&str], clear: &[u8]) -> Result<Vec<u8>, String> {
        let sealed = self.0.seal_stored(of, clear);
        sealed.map_err(|error| error.to_string())
    }

    fn open(&self, of: &[&str], sealed: &[u8]) -> Result<Vec<u8>, String> {
        let opened = self.0.open_stored(of, sealed);
        opened.map_err(|error| error.to_string())
    }
}

/// Returns the consents in the store, or `None` without keys. The configuration refuses a server with consents and without
/// keys.
pub(crate) fn of_store(
    config: &Config,
    rows: Arc<dyn Consents>,
) -> anyhow::Result<Option<Arc<PersonConsents>>> {
    let Some(ring) = config.codec.ring()? else {
        return Ok(None);
    };
    let address = config.gateway.auth.public_origin.as_ref();
    let address = address.map(|origin| origin.as_str().to_owned());
    let sealer = Arc::new(RingSealer(ring));
    Ok(Some(Arc::new(PersonConsents::new(rows, sealer, address))))
}

/// Returns the consents for a gateway, or `None` when no server needs a consent. A changed server needs a restart of the
/// gateway, because the process wipes the secrets of clients from its environment.
pub(crate) fn of_gateway(
    config: &Config,
    rows: Arc<dyn Consents>,
) -> anyhow::Result<Option<Arc<dyn ToolConsents>>> {
    let egress = Egress::new(config.egress.clone()).context("cannot set up the HTTP client")?;
    let servers = config.mcp.iter();
    let servers: Vec<_> = servers
        .filter_map(|options| options.consent_server(&egress))
        .collect();
    let consents = of_store(config, rows)?.filter(|_| !servers.is_empty());
    Ok(consents.map(|consents| Arc::new(OfGateway { servers, consents }) as _))
}

/// The consents at a gateway.
struct OfGateway {
    servers: Vec<ConsentServer>,
    consents: Arc<PersonConsents>,
}

impl OfGateway {
    fn server(&self, of: &ConsentOf) -> Result<&ConsentServer, ConsentRefusal> {
        let mut servers = self.servers.iter();
        let server = servers.find(|it| it.name() == of.server && it.serves(&of.tenant_id));
        server.ok_or(ConsentRefusal::UnknownServer)
    }
}

#[async_trait]
impl ToolConsents for OfGateway {
    fn servers(&self, tenant_id: &str) -> Vec<String> {
        let servers = self.servers.iter().filter(|it| it.serves(tenant_id));
        servers.map(|server| server.name().to_owned()).collect()
    }

    async fn given(
        &self,
        tenant_id: &str,
        owner_id: &str,
    ) -> Result<Vec<GivenConsent>, StoreError> {
        self.consents.rows().consents_of(tenant_id, owner_id).await
    }

    async fn begin(&self, of: &ConsentOf, redirect_uri: &str) -> Result<String, ConsentRefusal> {
        let server = self.server(of)?;
        let begun = server.begin(&self.consents, of, redirect_uri).await;
        begun.map_err(refusal)
    }

    async fn begun(&self, state: &str) -> Result<Option<ConsentOf>, StoreError> {
        let begun = self.consents.rows().begun_consent(&state_hash(state)).await;
        Ok(begun?.map(|begun| begun.of))
    }

    async fn take(&self, state: &str) -> Result<Option<ConsentRequest>, StoreError> {
        self.consents.rows().take_consent(&state_hash(state)).await
    }

    async fn end(
        &self,
        taken: &ConsentRequest,
        code: &str,
        issuer: Option<&str>,
        audit: &NewAuditEntry,
    ) -> Result<(), ConsentRefusal> {
        let server = self.server(&taken.of)?;
        let answer = ConsentAnswer { code, issuer };
        let ended = server.end(&self.consents, taken, answer, audit).await;
        ended.map_err(refusal)
    }

    async fn remove(&self, of: &ConsentOf, audit: &NewAuditEntry) -> Result<bool, StoreError> {
        let Some(ended) = self.consents.rows().end_consent(of, audit).await? else {
            return Ok(false);
        };
        if let Ok(server) = self.server(of) {
            server.revoke(&self.consents, of, &ended.sealed).await;
        }
        Ok(true)
    }
}

fn refusal(error: ConsentError) -> ConsentRefusal {
    match error {
        ConsentError::Access { code, reason } => ConsentRefusal::Unavailable { code, reason },
        ConsentError::Refused => ConsentRefusal::Refused,
        ConsentError::Store(ConsentStoreError::Store(error)) => ConsentRefusal::Store(error),
        ConsentError::Store(ConsentStoreError::Sealed(reason)) => ConsentRefusal::Unavailable {
            code: "consent_unavailable",
            reason,
        },
    }
}
