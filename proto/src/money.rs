//! The tokens and the cost of model calls. Money is counted in whole nano-USD (10^-9 USD), because sums must be exact.

use crate::{
    event::Usage,
    turn::{LlmCompleteState, Prices},
};

/// The number of nano-USD in a USD.
pub const NANO_USD: u64 = 1_000_000_000;
/// The divisor from prices to nano-USD: a price is in micro-USD per million tokens, which is 1000 times the cost of a
/// token in nano-USD.
const PER_TOKEN: u128 = 1000;
/// The assumed number of output tokens of an answer without a known length limit.
pub const ASSUMED_OUTPUT_TOKENS: u32 = 4096;
/// The assumed bytes per token before a provider has counted the tokens: English has about 4, code and JSON have 3, and
/// an estimate should not be too low.
pub const ASSUMED_BYTES_PER_TOKEN: u64 = 3;

impl Usage {
    /// Returns the token counts of a stored answer.
    pub fn of(state: &LlmCompleteState) -> Self {
        Self {
            input_tokens: state.input_tokens,
            output_tokens: state.output_tokens,
            cached_tokens: state.cached_tokens,
            cache_write_tokens: state.cache_write_tokens,
            reasoning_tokens: state.reasoning_tokens,
            estimated: state.is_estimated,
        }
    }

    /// Returns the sums with another usage. A sum beyond the largest number stays at the largest number.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            estimated: self.estimated || other.estimated,
        }
    }

    /// Returns the number of tokens read and written.
    pub fn tokens(&self) -> u64 {
        u64::from(self.input_tokens) + u64::from(self.output_tokens)
    }
}

impl Prices {
    /// Returns the cost of the tokens in nano-USD, rounded up. Cached tokens have prices of their own among the input
    /// tokens, and reasoning tokens have a price of their own among the output tokens.
    pub fn nano_usd(&self, usage: &Usage) -> u64 {
        let apart = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
        let parts = [
            (usage.input_tokens.saturating_sub(apart), self.input),
            (usage.cached_tokens, self.cached_input),
            (usage.cache_write_tokens, self.cache_write),
            (
                usage.output_tokens.saturating_sub(usage.reasoning_tokens),
                self.output,
            ),
            (usage.reasoning_tokens, self.reasoning),
        ];
        let parts = parts.map(|(tokens, price)| u128::from(tokens) * u128::from(price));
        let sum = parts.iter().sum::<u128>().div_ceil(PER_TOKEN);
        u64::try_from(sum).unwrap_or(u64::MAX)
    }
}

/// Returns an amount of nano-USD in USD, as a decimal number without zeros at its end: `0.0421`, `3`.
pub fn usd(nano_usd: u64) -> String {
    let (whole, rest) = (nano_usd / NANO_USD, nano_usd % NANO_USD);
    let text = format!("{whole}.{rest:09}");
    let text = text.trim_end_matches('0');
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        // USD per million: 1.25, 0.125, 1.5, 10, 12.
        let prices = Prices {
            input: 1_250_000,
            cached_input: 125_000,
            cache_write: 1_500_000,
            output: 10_000_000,
            reasoning: 12_000_000,
        };
        let usage = Usage {
            input_tokens: 1000,
            cached_tokens: 600,
            cache_write_tokens: 100,
            output_tokens: 50,
            reasoning_tokens: 20,
            estimated: false,
        };
        let expected = 300 * 1250 + 600 * 125 + 100 * 1500 + 30 * 10_000 + 20 * 12_000;
        assert_eq!(prices.nano_usd(&usage), expected);
        let one = Usage {
            cached_tokens: 1,
            ..Usage::default()
        };
        let cheap = Prices {
            cached_input: 1,
            ..Prices::default()
        };
        assert_eq!(
            cheap.nano_usd(&one),
            1,
            "a part of a nano-USD is rounded up"
        );
        let most = Usage {
            input_tokens: u32::MAX,
            ..Usage::default()
        };
        let dear = Prices {
            input: u32::MAX,
            ..Prices::default()
        };
        assert!(dear.nano_usd(&most) < u64::MAX);
    }

    #[test]
    fn an_amount_is_written_in_usd() {
        for (nano_usd, expected) in [
            (0, "0"),
            (1, "0.000000001"),
            (42_100_000, "0.0421"),
            (3 * NANO_USD, "3"),
            (10 * NANO_USD + 500_000_000, "10.5"),
        ] {
            assert_eq!(usd(nano_usd), expected);
        }
    }
}
