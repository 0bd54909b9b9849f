//! `[models."PROVIDER/MODEL"]`: price and limits of a model.

use std::collections::BTreeMap;

use everturn_proto::turn::Prices;
use serde::Deserialize;
use toml::Spanned;

use super::{
    checker::Checker,
    forms::{Form, Number, Written, within},
};

/// The highest price of a million tokens, in USD. In micro-USD, the price fits 32 bits.
const MAX_PRICE: f64 = 4000.0;
const MICRO_USD: f64 = 1e6;
/// The size of a context window, in tokens. No model has a larger window.
pub(super) type ContextWindow = Number<1, 10_000_000>;

/// The table of one model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    input: Option<Written<Price>>,
    cached_input: Option<Written<Price>>,
    cache_write: Option<Written<Price>>,
    output: Option<Written<Price>>,
    reasoning: Option<Written<Price>>,
    assumed_output_tokens: Option<Written<Number<1, 1_000_000>>>,
    context_window: Option<Written<ContextWindow>>,
    images: Option<bool>,
    pdfs: Option<bool>,
}

/// The checked table of a model.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Model {
    pub(super) prices: Option<Prices>,
    pub(super) assumed_output_tokens: Option<u32>,
    pub(super) context_window: Option<u32>,
    pub(super) no_images: bool,
    pub(super) no_pdfs: bool,
}

/// The models of the file, by `provider/model`.
#[derive(Debug, Default)]
pub(super) struct Models(BTreeMap<String, Model>);

impl Models {
    /// Reads and checks the tables.
    pub(super) fn check(
        tables: &BTreeMap<Spanned<String>, ModelTable>,
        check: &mut Checker<'_>,
    ) -> Self {
        let mut models = BTreeMap::new();
        for (name, table) in tables {
            parts_of_name(check, name);
            models.insert(name.get_ref().clone(), table.check(name, check));
        }
        Self(models)
    }

    /// Returns the settings of a model.
    pub(super) fn of(&self, provider: &str, model: &str) -> Model {
        let known = self.0.get(&format!("{provider}/{model}"));
        known.copied().unwrap_or_default()
    }
}

/// Returns the provider and the model of a name like "openai/gpt-5-mini".
pub(super) fn parts_of_name<'n>(
    check: &mut Checker<'_>,
    name: &'n Spanned<String>,
) -> Option<(&'n str, &'n str)> {
    let parts = name.get_ref().split_once('/');
    let parts = parts.filter(|(_, model)| !model.trim().is_empty());
    if parts.is_none() {
        check.wrong(
            name,
            "the name of a model is \"provider/model\", like \"openai/gpt-5-mini\"",
        );
    }
    parts
}

impl ModelTable {
    fn check(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> Model {
        // A wrong price counts as a price. The checker has noted the mistake.
        let mut price = |written: &Option<Written<Price>>| {
            let written = written.as_ref()?;
            Some(check.value_or(written, 0))
        };
        let (input, output) = (price(&self.input), price(&self.output));
        let cached_input = price(&self.cached_input);
        let cache_write = price(&self.cache_write);
        let reasoning = price(&self.reasoning);
        let has_others = [cached_input, cache_write, reasoning]
            .iter()
            .any(Option::is_some);
        let prices = match (input, output) {
            (Some(input), Some(output)) => Some(Prices {
                input,
                output,
                cached_input: cached_input.unwrap_or(input),
                cache_write: cache_write.unwrap_or(input),
                reasoning: reasoning.unwrap_or(output),
            }),
            (None, None) if !has_others => None,
            _ => {
                check.wrong(
                    name,
                    "a model has a price when it has both `input` and `output`, in USD per million tokens",
                );
                None
            }
        };
        Model {
            prices,
            assumed_output_tokens: check.value(&self.assumed_output_tokens),
            context_window: check.value(&self.context_window),
            no_images: self.images == Some(false),
            no_pdfs: self.pdfs == Some(false),
        }
    }
}

/// A price in USD per million tokens. The value is in micro-USD.
struct Price;

impl Form for Price {
    type Toml = f64;
    type Value = u32;

    fn read(usd: f64) -> Result<u32, String> {
        let usd = within(usd, 0.0..=MAX_PRICE)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let micro_usd = (usd * MICRO_USD).round() as u32;
        Ok(micro_usd)
    }
}
