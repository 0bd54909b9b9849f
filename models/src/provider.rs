//! Providers: the addresses for requests, and the form of the requests.

use std::collections::BTreeMap;

pub use crate::kind::ProviderKind;
use crate::{caller::CallerFields, gate::CallLimits, profile::ProfileSettings};

/// The address of a provider, and the form of its requests.
#[derive(Clone)]
pub struct Provider {
    /// The form of the provider's requests and replies.
    pub kind: ProviderKind,
    /// Base URL; `None`: the kind's default address.
    pub base_url: Option<String>,
    /// The key for the provider, if it needs a key.
    pub api_key: Option<String>,
    /// Further headers of each request, by name. The values are no secrets.
    pub fixed_headers: BTreeMap<String, String>,
    /// Further headers of each request, by name. The values are secrets like the key.
    pub headers: BTreeMap<String, String>,
    /// The fields of the provider's profile that differ from the table of profiles.
    pub profile: ProfileSettings,
    /// The facts about callers in each request.
    pub caller: CallerFields,
    /// The limits of one process's calls to the provider.
    pub limits: CallLimits,
    /// True when the provider makes responses in the background, if its kind can ([`ProviderKind::has_background`]).
    pub background: bool,
}

impl Provider {
    /// Makes a provider of this kind at the kind's default address, without a key.
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            api_key: None,
            fixed_headers: BTreeMap::new(),
            headers: BTreeMap::new(),
            profile: ProfileSettings::default(),
            caller: CallerFields::default(),
            limits: CallLimits::default(),
            background: kind.has_background(),
        }
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key and the headers stay out of logs.
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("profile", &self.profile)
            .field("limits", &self.limits)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

/// Providers by the name in agent definitions.
pub type Providers = BTreeMap<String, Provider>;
