//! The providers of a client, by their names in the configuration.

use std::collections::BTreeMap;

use crate::{
    endpoint::Endpoint,
    endpoint::ProviderError,
    error::ModelError,
    failure::unknown_provider,
    gate::{Admission, Arrival, Later},
    provider::{Provider, Providers},
};

/// Providers, each ready for calls.
pub(super) struct Targets<T>(BTreeMap<String, T>);

impl<T: AsRef<Endpoint>> Targets<T> {
    /// Makes the target of every provider from an endpoint.
    pub(super) fn new(
        providers: &Providers,
        target: impl Fn(&Provider, Endpoint) -> T,
    ) -> Result<Self, ProviderError> {
        let targets = providers.iter().map(|(name, provider)| {
            let endpoint = Endpoint::new(name, provider)?;
            Ok((name.clone(), target(provider, endpoint)))
        });
        targets.collect::<Result<_, _>>().map(Self)
    }

    /// True when the client has a provider of this name.
    pub(super) fn has(&self, provider: &str) -> bool {
        self.0.contains_key(provider)
    }

    /// Returns the provider by name.
    pub(super) fn get(&self, provider: &str) -> Result<&T, ModelError> {
        let target = self.0.get(provider);
        target.ok_or_else(|| unknown_provider(provider))
    }

    /// Waits until the provider's limits let one more call begin.
    pub(super) async fn admit(
        &self,
        provider: &str,
        arrival: &Arrival,
    ) -> Result<Admission, Later> {
        match self.0.get(provider) {
            Some(target) => target.as_ref().admit(arrival).await,
            None => Ok(Admission::default()),
        }
    }
}
