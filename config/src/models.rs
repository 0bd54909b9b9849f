//! `[models."PROVIDER/MODEL"]`: price and limits of a model.

use std::collections::BTreeMap;

use everturn_proto::turn::Prices;
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

/// The highest price of a million tokens, in USD. In micro-USD, the price fits 32 bits.
const MAX_PRICE: f64 = 4000.0;
/// The largest context window. No model has a larger one.
pub(super) const MAX_CONTEXT_WINDOW: u32 = 10_000_000;
const MAX_ASSUMED_TOKENS: u32 = 1_000_000;
const MICRO_USD: f64 = 1e6;

/// The table of one model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    input: Option<Spanned<f64>>,
    cached_input: Option<Spanned<f64>>,
    cache_write: Option<Spanned<f64>>,
    output: Option<Spanned<f64>>,
    reasoning: Option<Spanned<f64>>,
    assumed_output_tokens: Option<Spanned<u32>>,
    context_window: Option<Spanned<u32>>,
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
            if !name.get_ref().contains('/') {
                check.wrong(
                    name,
                    "the name of a model is \"provider/model\", like \"openai/gpt-5-mini\"",
                );
            }
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

impl ModelTable {
    fn check(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> Model {
        let mut price = |key, value: &Option<Spanned<f64>>| price(check, key, value.as_ref());
        let (input, output) = (price("input", &self.input), price("output", &self.output));
        let cached_input = price("cached_input", &self.cached_input);
        let cache_write = price("cache_write", &self.cache_write);
        let reasoning = price("reasoning", &self.reasoning);
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
        let assumed_output_tokens = self.assumed_output_tokens.as_ref().map(|written| {
            let range = 1..=MAX_ASSUMED_TOKENS;
            check.number("assumed_output_tokens", written, 1, range)
        });
        let context_window = self
            .context_window
            .as_ref()
            .map(|written| check.number("context_window", written, 1, 1..=MAX_CONTEXT_WINDOW));
        Model {
            prices,
            assumed_output_tokens,
            context_window,
            no_images: self.images == Some(false),
            no_pdfs: self.pdfs == Some(false),
        }
    }
}

/// Returns a price in micro-USD per million tokens, if the file has a price.
fn price(check: &mut Checker<'_>, key: &str, value: Option<&Spanned<f64>>) -> Option<u32> {
    let usd = check.number(key, value?, 0.0, 0.0..=MAX_PRICE);
    // `check` has already reported a price outside the range.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micro_usd = (usd * MICRO_USD).round() as u32;
    Some(micro_usd)
}
