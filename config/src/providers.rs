//! `[providers.NAME]`: endpoints of language models.

use std::collections::BTreeMap;

use everturn_models::{CallLimits, Provider, ProviderKind, Providers};
use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use toml::Spanned;

use super::{
    caller::CallerTable,
    checker::Checker,
    forms::{HttpUrl, Number, Variable, Written},
    headers::{Reserved, reserved},
    profile::ProfileTable,
};

/// No worker has slots for more parallel calls.
type Concurrent = Number<1, 10_000, usize>;
/// No provider allows more tokens.
type Tokens = Number<1, 10_000_000_000, u64>;

/// A provider that needs no table: its key in the environment is enough.
pub(super) struct UsualProvider {
    pub(super) name: &'static str,
    kind: ProviderKind,
    pub(super) key_variable: &'static str,
    /// The model of an agent `default` that the file does not have.
    pub(super) model: &'static str,
}

pub(super) const USUAL_PROVIDERS: [UsualProvider; 3] = [
    UsualProvider {
        name: "openai",
        kind: ProviderKind::OpenAi,
        key_variable: "OPENAI_API_KEY",
        model: "gpt-5-mini",
    },
    UsualProvider {
        name: "anthropic",
        kind: ProviderKind::Anthropic,
        key_variable: "ANTHROPIC_API_KEY",
        model: "claude-sonnet-4-5",
    },
    UsualProvider {
        name: "gemini",
        kind: ProviderKind::Gemini,
        key_variable: "GEMINI_API_KEY",
        model: "gemini-2.5-flash",
    },
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderTable {
    kind: ProviderKind,
    base_url: Option<Written<HttpUrl>>,
    api_key_env: Option<Written<Variable>>,
    #[serde(default)]
    headers: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    headers_env: BTreeMap<Spanned<String>, Written<Variable>>,
    max_concurrent_calls: Option<Written<Concurrent>>,
    requests_per_minute: Option<Written<Number<1, 100_000, usize>>>,
    tokens_per_minute: Option<Written<Tokens>>,
    background: Option<Spanned<bool>>,
    profile: Option<ProfileTable>,
    #[serde(default)]
    caller: CallerTable,
}

/// Checks the tables. Adds each usual provider without a table whose key is in the environment.
pub(super) fn check(
    tables: BTreeMap<Spanned<String>, ProviderTable>,
    check: &mut Checker<'_>,
) -> Providers {
    let mut providers: Providers = tables
        .into_iter()
        .map(|(name, table)| {
            let provider = table.check(&name, check);
            (name.into_inner(), provider)
        })
        .collect();
    for usual in &USUAL_PROVIDERS {
        let api_key = check.variable(usual.key_variable);
        // A gateway does not know which keys workers have.
        if api_key.is_some() || !check.is_of_worker() {
            let provider = Provider {
                api_key,
                ..Provider::new(usual.kind)
            };
            providers.entry(usual.name.to_owned()).or_insert(provider);
        }
    }
    providers
}

/// Notes that an agent names a provider that does not exist.
pub(super) fn unknown(
    check: &mut Checker<'_>,
    at: &Spanned<String>,
    providers: &Providers,
    name: &str,
) {
    let usual = USUAL_PROVIDERS.iter().find(|usual| usual.name == name);
    if let Some(usual) = usual {
        check.wrong(
            at,
            format!(
                "the provider `{name}` needs its key: set {} in the environment, or write a table [providers.{name}]",
                usual.key_variable
            ),
        );
    } else {
        check.unknown(at, "provider", name, providers.keys().map(String::as_str));
    }
}

impl ProviderTable {
    /// Returns the headers of `headers`.
    fn fixed_headers(&self, check: &mut Checker<'_>) -> BTreeMap<String, String> {
        for (name, value) in &self.headers {
            let header = name.get_ref().to_ascii_lowercase();
            let mut secrets = self.headers_env.keys();
            let problem = match reserved(&header) {
                _ if HeaderName::try_from(&header).is_err() => Some("is no name of a header"),
                Some(Reserved::Secret) => Some(
                    "holds a secret: write the header into `headers_env`, or the key into `api_key_env`",
                ),
                Some(Reserved::Connection) => Some("belongs to the connection, and cannot be set"),
                None if secrets.any(|it| it.get_ref().eq_ignore_ascii_case(&header)) => {
                    Some("is in `headers` and in `headers_env`; remove either header")
                }
                None => None,
            };
            if let Some(problem) = problem {
                check.wrong(name, format!("`{}` {problem}", name.get_ref()));
            }
            if HeaderValue::from_str(value.get_ref()).is_err() {
                check.wrong(value, "the value holds characters that no header has");
            }
        }
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.get_ref().clone(), value.get_ref().clone()))
            .collect()
    }

    fn check(self, name: &Spanned<String>, check: &mut Checker<'_>) -> Provider {
        let has_background = self.kind.has_background();
        if let Some(background) = &self.background
            && !has_background
        {
            check.wrong(
                background,
                "only providers of kind `openai_responses` make responses in the background; remove `background`",
            );
        }
        if self.base_url.is_none() && self.kind.own_url().is_none() {
            check.wrong(
                name,
                "a provider of kind `azure` needs `base_url`, the address of its resource, like \
                 \"https://NAME.openai.azure.com/openai/v1/\"",
            );
        }
        let caller = self.caller.check(check, self.kind, |header| {
            let mut names = self.headers.keys().chain(self.headers_env.keys());
            names.any(|name| name.get_ref().eq_ignore_ascii_case(header))
        });
        let key = self.api_key_env.as_ref();
        Provider {
            kind: self.kind,
            caller,
            fixed_headers: self.fixed_headers(check),
            headers: check.secret_headers(&self.headers_env),
            profile: (self.profile.as_ref())
                .map(|profile| profile.check(self.kind, check))
                .unwrap_or_default(),
            limits: CallLimits {
                concurrent: check.value(&self.max_concurrent_calls),
                per_minute: check.value(&self.requests_per_minute),
                tokens_per_minute: check.value(&self.tokens_per_minute),
            },
            background: has_background && self.background.is_none_or(Spanned::into_inner),
            api_key: key.and_then(|variable| check.secret("api_key_env", variable)),
            base_url: check.value(&self.base_url).map(|url| url.text),
        }
    }
}
