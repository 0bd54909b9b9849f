//! `[providers.NAME]`: endpoints of language models.

use std::collections::BTreeMap;

use everturn_activities::model::{Provider, ProviderKind, Providers};
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
}

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
        Provider {
            kind: self.kind,
            headers,
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
