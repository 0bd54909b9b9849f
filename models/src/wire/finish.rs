//! The words by which providers end a reply, and the emptiness of a reply: the only code that decides whether an ended
//! reply is an answer.

use everturn_proto::words::FailureCode;

use crate::{error::ModelError, failure};

/// The meaning of a finish word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model ended its reply.
    Done,
    /// The reply is cut at a limit of tokens. The model may go on.
    Length,
    /// The content policy stopped the reply.
    Policy,
    /// The model wrote a call that the provider could not read.
    Unreadable,
    /// The provider broke the reply off.
    Broken,
}

/// The finish words of every provider, in small letters. A word outside this table ends a reply normally if the reply
/// has content.
const WORDS: &[(&str, Finish)] = &[
    ("stop", Finish::Done),
    ("end_turn", Finish::Done),
    ("stop_sequence", Finish::Done),
    ("tool_calls", Finish::Done),
    ("tool_use", Finish::Done),
    ("function_call", Finish::Done),
    ("eos", Finish::Done),
    ("eos_token", Finish::Done),
    ("length", Finish::Length),
    ("max_tokens", Finish::Length),
    ("max_output_tokens", Finish::Length),
    ("model_length", Finish::Length),
    ("model_context_window_exceeded", Finish::Length),
    // Anthropic asks to send the reply back, so that the model goes on.
    ("pause_turn", Finish::Length),
    ("content_filter", Finish::Policy),
    ("content_filtered", Finish::Policy),
    ("guardrail_intervened", Finish::Policy),
    ("refusal", Finish::Policy),
    ("safety", Finish::Policy),
    ("sensitive", Finish::Policy),
    ("recitation", Finish::Policy),
    ("language", Finish::Policy),
    ("blocklist", Finish::Policy),
    ("prohibited_content", Finish::Policy),
    ("spii", Finish::Policy),
    ("image_safety", Finish::Policy),
    ("image_prohibited_content", Finish::Policy),
    ("image_recitation", Finish::Policy),
    ("malformed_function_call", Finish::Unreadable),
    ("malformed_response", Finish::Unreadable),
    ("malformed_tool_use", Finish::Unreadable),
    ("malformed_model_output", Finish::Unreadable),
    ("unexpected_tool_call", Finish::Unreadable),
    ("too_many_tool_calls", Finish::Unreadable),
    ("missing_thought_signature", Finish::Unreadable),
    ("abort", Finish::Broken),
    ("aborted", Finish::Broken),
    ("cancelled", Finish::Broken),
    ("canceled", Finish::Broken),
    ("error", Finish::Broken),
    ("network_error", Finish::Broken),
    ("insufficient_system_resource", Finish::Broken),
    ("repetition_truncation", Finish::Broken),
    ("timeout", Finish::Broken),
];

impl Finish {
    /// Returns the meaning of a finish word; `None` for an unknown word. Gateways put the word of the provider behind
    /// them after a colon (`content_filter: PROHIBITED_CONTENT`); the word after the colon is the more exact one.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let known = |word: &str| {
            let word = word.trim().to_ascii_lowercase();
            WORDS
                .iter()
                .find(|(known, _)| *known == word)
                .map(|(_, finish)| *finish)
        };
        word.rsplit(':').find_map(known)
    }
}

/// The end of a reply, as a provider reported it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// The finish word; `None` when the provider sent none.
    pub(crate) word: Option<String>,
    /// The provider's sentence about the end, if any.
    pub(crate) detail: Option<String>,
}

impl End {
    /// Returns true when the reply is cut at a limit of tokens.
    ///
    /// # Errors
    ///
    /// The error of a reply that must not count as an answer: stopped by a policy, broken off, unreadable, or empty.
    pub(crate) fn judge(
        &self,
        provider: &str,
        has_text: bool,
        has_calls: bool,
    ) -> Result<bool, ModelError> {
        let word = self.word.as_deref();
        let finish = word.and_then(Finish::of);
        let reason = self.detail.as_deref().or(word).unwrap_or_default();
        match finish {
            Some(Finish::Policy) => Err(failure::content_policy(provider, reason)),
            Some(Finish::Broken) => Err(failure::broken_off(provider, reason)),
            Some(Finish::Unreadable) => Err(ModelError::new(
                FailureCode::LlmInvalidResponse,
                format!(
                    "The model's reply cannot be used ({}).",
                    failure::short(reason)
                ),
            )),
            // A reply can be cut before its first letter, when the thoughts took all tokens.
            Some(Finish::Length) => Ok(true),
            Some(Finish::Done) | None if has_text || has_calls => Ok(false),
            Some(Finish::Done) | None => Err(failure::empty(provider, word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_gateway_and_of_the_provider_behind_it_are_known() {
        for (word, expected) in [
            ("stop", Some(Finish::Done)),
            ("STOP", Some(Finish::Done)),
            ("MAX_TOKENS", Some(Finish::Length)),
            ("content_filter: PROHIBITED_CONTENT", Some(Finish::Policy)),
            (
                "function_call_filter: MALFORMED_FUNCTION_CALL",
                Some(Finish::Unreadable),
            ),
            ("content_filter: something new", Some(Finish::Policy)),
            ("abort", Some(Finish::Broken)),
            ("unheard of", None),
            ("", None),
        ] {
            assert_eq!(Finish::of(word), expected, "{word}");
        }
    }

    #[test]
    fn only_a_reply_with_content_is_an_answer() {
        let judged = |word: Option<&str>, has_text, has_calls| {
            let end = End {
                word: word.map(str::to_owned),
                detail: None,
            };
            end.judge("p", has_text, has_calls)
                .map_err(|error| error.code)
        };
        assert_eq!(judged(Some("stop"), true, false), Ok(false));
        assert_eq!(judged(Some("stop"), false, true), Ok(false));
        assert_eq!(judged(None, true, false), Ok(false));
        assert_eq!(judged(Some("new word"), true, false), Ok(false));
        assert_eq!(judged(Some("length"), false, false), Ok(true));
        for word in [Some("stop"), Some("tool_calls"), Some("new word"), None] {
            assert_eq!(
                judged(word, false, false),
                Err(FailureCode::LlmEmptyReply),
                "{word:?}"
            );
        }
        assert_eq!(
            judged(Some("abort"), true, false),
            Err(FailureCode::LlmUnavailable)
        );
        assert_eq!(
            judged(Some("SAFETY"), true, false),
            Err(FailureCode::LlmContentPolicy)
        );
        assert_eq!(
            judged(Some("MALFORMED_FUNCTION_CALL"), false, false),
            Err(FailureCode::LlmInvalidResponse)
        );
    }
}
