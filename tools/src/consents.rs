//! Consents of people in the store, for tools that act in the name of a person. The store has the secrets in sealed form.
//!
//! Must not be here: the secrets themselves, which the kind of the tool knows (`mcp/oauth/tokens.rs`).

use std::sync::Arc;

use everturn_store::{ConsentOf, Consents, StoreError};
use serde::{Serialize, de::DeserializeOwned};

/// Seals secrets for the store. The worker has the keys.
pub trait Sealer: Send + Sync {
    /// Seals a secret for its owner and use.
    fn seal(&self, of: &[&str], clear: &[u8]) -> Result<Vec<u8>, String>;

    /// Opens a secret of the owner and the use.
    fn open(&self, of: &[&str], sealed: &[u8]) -> Result<Vec<u8>, String>;
}

/// The consents of people in the store.
#[derive(Clone)]
pub struct PersonConsents {
    rows: Arc<dyn Consents>,
    sealer: Arc<dyn Sealer>,
    /// The gateway's address for people, if known.
    address: Option<String>,
}

/// The reason why a consent cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConsentStoreError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys.
    #[error("a secret of a consent cannot be sealed or opened: {0}")]
    Sealed(String),
}

impl PersonConsents {
    /// Makes the consents in a store. `address` is the gateway's address for people.
    pub fn new(rows: Arc<dyn Consents>, sealer: Arc<dyn Sealer>, address: Option<String>) -> Self {
        Self {
            rows,
            sealer,
            address,
        }
    }

    /// Returns the rows.
    pub fn rows(&self) -> &dyn Consents {
        &*self.rows
    }

    /// Returns the address of the request that begins a consent.
    pub(crate) fn way(&self, server: &str) -> String {
        let address = self.address.as_deref().unwrap_or_default();
        format!("{address}/api/v1/tool-servers/{server}/consent")
    }

    /// Returns the id of a person's consent.
    pub(crate) async fn id(&self, of: &ConsentOf) -> Result<Option<String>, StoreError> {
        Ok(self.rows.consent(of).await?.map(|consent| consent.id))
    }

    /// Seals a secret of a consent for a use.
    pub(crate) fn seal(
        &self,
        of: &ConsentOf,
        purpose: &str,
        secret: &impl Serialize,
    ) -> Result<Vec<u8>, ConsentStoreError> {
        let clear = serde_json::to_vec(secret);
        let clear = clear.map_err(|error| ConsentStoreError::Sealed(error.to_string()))?;
        let owner = [purpose, &of.tenant_id, &of.owner_id, &of.server];
        let sealed = self.sealer.seal(&owner, &clear);
        sealed.map_err(ConsentStoreError::Sealed)
    }

    /// Opens a secret of a consent for the use.
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        of: &ConsentOf,
        purpose: &str,
        sealed: &[u8],
    ) -> Result<T, ConsentStoreError> {
        let owner = [purpose, &of.tenant_id, &of.owner_id, &of.server];
        let clear = self.sealer.open(&owner, sealed);
        let clear = clear.map_err(ConsentStoreError::Sealed)?;
        // The error of the parser would repeat a part of the secret.
        serde_json::from_slice(&clear)
            .map_err(|_| ConsentStoreError::Sealed("the format is not known".to_owned()))
    }
}
