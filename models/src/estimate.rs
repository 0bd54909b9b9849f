//! The estimated tokens of a call: for a provider that counts no tokens, and for a call without a reply. No I/O is here.

use everturn_proto::{event::Usage, money::ASSUMED_BYTES_PER_TOKEN};

/// The number of bytes per token. Providers count the tokens of each request, and the next request is much like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytesPerToken {
    bytes: u64,
    tokens: u64,
}

impl Default for BytesPerToken {
    fn default() -> Self {
        Self {
            bytes: ASSUMED_BYTES_PER_TOKEN,
            tokens: 1,
        }
    }
}

impl BytesPerToken {
    /// Returns the ratio by a provider's count; `None` without a count, or when the count is impossible for this
    /// request.
    pub fn measured(sent_bytes: usize, usage: Usage) -> Option<Self> {
        let (bytes, tokens) = (sent_bytes as u64, u64::from(usage.input_tokens));
        // A token has about 1 byte in the worst text, and at most 16 in the best.
        (!usage.estimated && tokens > 0 && bytes >= tokens / 2 && bytes <= tokens * 16)
            .then_some(Self { bytes, tokens })
    }

    /// Returns the estimated tokens of a text.
    pub fn tokens(self, bytes: usize) -> u64 {
        bytes as u64 * self.tokens / self.bytes
    }

    /// Returns the estimated bytes of a text of `tokens` tokens.
    pub fn bytes(self, tokens: u64) -> usize {
        usize::try_from(tokens * self.bytes / self.tokens).unwrap_or(usize::MAX)
    }
}

/// The estimated tokens of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// The tokens of the request.
    pub input: u32,
    /// The most tokens of the reply.
    pub longest_answer: u32,
    /// The bytes per token.
    pub measure: BytesPerToken,
}

impl TokenEstimate {
    /// Returns the largest possible usage of the call.
    pub fn most(&self) -> Usage {
        Usage {
            input_tokens: self.input,
            output_tokens: self.longest_answer,
            estimated: true,
            ..Usage::default()
        }
    }

    /// Estimates the numbers that the provider has not counted, for a reply of `bytes` bytes. Some servers count only the
    /// request or only the reply.
    pub(crate) fn complete(&self, usage: &mut Usage, bytes: usize) {
        if usage.input_tokens == 0 && self.input > 0 {
            usage.input_tokens = self.input;
            usage.estimated = true;
        }
        if usage.output_tokens == 0 && bytes > 0 {
            let tokens = self.measure.tokens(bytes).max(1);
            usage.output_tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
            usage.estimated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATE: TokenEstimate = TokenEstimate {
        input: 100,
        longest_answer: 1000,
        measure: BytesPerToken {
            bytes: 3,
            tokens: 1,
        },
    };

    #[test]
    fn numbers_that_the_provider_does_not_count_are_estimated() {
        let usage = |input_tokens, output_tokens, estimated| Usage {
            input_tokens,
            output_tokens,
            estimated,
            ..Usage::default()
        };
        for (counted, expected) in [
            (usage(0, 0, false), usage(100, 12, true)),
            (usage(7, 0, false), usage(7, 12, true)),
            (usage(0, 9, false), usage(100, 9, true)),
            (usage(7, 9, false), usage(7, 9, false)),
        ] {
            let mut completed = counted;
            ESTIMATE.complete(&mut completed, 36);
            assert_eq!(completed, expected);
        }
        let mut nothing = Usage::default();
        ESTIMATE.complete(&mut nothing, 0);
        assert_eq!(nothing, usage(100, 0, true));
        assert_eq!(ESTIMATE.most(), usage(100, 1000, true));
    }

    #[test]
    fn a_ratio_is_measured_by_a_providers_count() {
        let usage = |input_tokens| Usage {
            input_tokens,
            ..Usage::default()
        };
        let measured = BytesPerToken::measured(1000, usage(250)).unwrap();
        assert_eq!((measured.tokens(4000), measured.bytes(1000)), (1000, 4000));
        let estimated = Usage {
            estimated: true,
            ..usage(250)
        };
        for (sent, usage, reason) in [
            (1000, usage(0), "no count"),
            (1000, usage(10), "the count of another request"),
            (100, usage(1000), "a server that adds up wrong"),
            (1000, estimated, "no count of the provider"),
        ] {
            assert_eq!(BytesPerToken::measured(sent, usage), None, "{reason}");
        }
    }
}
