//! `[providers.NAME]`: endpoints of language models.

use std::{collections::BTreeMap, ops::RangeInclusive};

use everturn_models::{CallLimits, Provider, ProviderKind, Providers};
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderTable {
    kind: ProviderKind,
    base_url: Option<Spanned<String>>,
    api_key_env: Option<Spanned<String>>,
    #[serde(default)]
    headers_env: BTreeMap<Spanned<String>, Spanned<String>>,
    max_concurrent_calls: Option<Spanned<usize>>,
    requests_per_minute: Option<Spanned<usize>>,
    tokens_per_minute: Option<Spanned<u64>>,
    background: Option<Spanned<bool>>,
}

/// The most parallel calls. No worker has more slots.
const CONCURRENT: RangeInclusive<usize> = 1..=10_000;
const PER_MINUTE: RangeInclusive<usize> = 1..=100_000;
/// The most tokens. No provider allows more.
const TOKENS: RangeInclusive<u64> = 1..=10_000_000_000;

pub(super) fn check(
    tables: BTreeMap<Spanned<String>, ProviderTable>,
    check: &mut Checker<'_>,
) -> Providers {
    tables
        .into_iter()
        .map(|(name, table)| {
            let provider = table.check(&name, check);
            (name.into_inner(), provider)
        })
        .collect()
}

impl ProviderTable {
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
        let header = |(name, variable): (&Spanned<String>, _)| {
            let value = check.secret("headers_env", variable)?;
            Some((name.get_ref().clone(), value))
        };
        let headers = self.headers_env.iter().filter_map(header).collect();
        let mut limit = |key, value: &Option<Spanned<usize>>, range| {
            value
                .as_ref()
                .map(|value| check.number(key, value, 1, range))
        };
        let concurrent = limit(
            "max_concurrent_calls",
            &self.max_concurrent_calls,
            CONCURRENT,
        );
        let per_minute = limit("requests_per_minute", &self.requests_per_minute, PER_MINUTE);
        let tokens = self.tokens_per_minute.as_ref();
        let tokens_per_minute =
            tokens.map(|written| check.number("tokens_per_minute", written, 1, TOKENS));
        Provider {
            kind: self.kind,
            headers,
            limits: CallLimits {
                concurrent,
                per_minute,
                tokens_per_minute,
            },
            background: has_background && self.background.is_none_or(Spanned::into_inner),
            api_key: self
                .api_key_env
                .and_then(|variable| check.secret("api_key_env", &variable)),
            base_url: self.base_url.map(|url| {
                check.http_url("base_url", &url, "https://api.example.com/v1/");
                url.into_inner()
            }),
        }
    }
}
