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
    background: Option<Spanned<bool>>,
}

pub(super) fn check(
    tables: BTreeMap<Spanned<String>, ProviderTable>,
    check: &mut Checker<'_>,
) -> Providers {
    tables
        .into_iter()
        .map(|(name, table)| (name.into_inner(), table.check(check)))
        .collect()
}

impl ProviderTable {
    fn check(self, check: &mut Checker<'_>) -> Provider {
        let has_background = self.kind.has_background();
        if let Some(background) = &self.background
            && !has_background
        {
            check.wrong(
                background,
                "only providers of kind `openai_responses` make responses in the background; remove `background`",
            );
        }
        Provider {
            kind: self.kind,
            background: has_background && self.background.is_none_or(Spanned::into_inner),
            base_url: self.base_url.map(|url| base_url(&url, check)),
            api_key: self
                .api_key_env
                .and_then(|variable| check.secret("api_key_env", &variable)),
        }
    }
}

/// The URL with a slash at its end, which the model client needs.
fn base_url(url: &Spanned<String>, check: &mut Checker<'_>) -> String {
    check.http_url("base_url", url, "https://api.example.com/v1/");
    format!("{}/", url.get_ref().trim_end_matches('/'))
}
