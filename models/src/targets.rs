//! The providers of a client, by their names in the configuration.

use std::collections::BTreeMap;

use crate::{
    endpoint::Endpoint,
    endpoint::ProviderError,
    error::ModelError,
    failure::unknown_provider,
    gate::{Admission, Arrival, Later},
    profile::{Profile, ProfileSettings},
    provider::{Provider, ProviderKind, Providers},
    tool_rules::ToolRules,
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

    /// Returns the rules for tools of a model. An unknown provider has the rules of an unknown server.
    pub(super) fn tool_rules(
        &self,
        kind: impl Fn(&T) -> ProviderKind,
        provider: &str,
        model: &str,
    ) -> ToolRules {
        let profile = self.0.get(provider).map_or_else(
            || Profile::of(ProviderKind::OpenAi, "", model, ProfileSettings::default()),
            |target| target.as_ref().profile(kind(target), model),
        );
        ToolRules::of(&profile)
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
