//! The calls of models that wait for their provider: rule 10 of `clients/transcripts/README.md`.

use serde::Serialize;

use super::fields::Fields;

/// The most waiting calls. Beyond the limit, the oldest is dropped.
const MAX_WAITS: usize = 256;

/// A call of a model that the provider has refused, and that is made again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelWait {
    /// The agent execution whose call waits.
    pub agent_execution_id: String,
    /// The LLM call of the agent execution, from 0.
    pub step: u64,
    /// The code of the refusal.
    pub code: String,
    /// The refusal in a sentence.
    pub message: String,
    /// The number of the next try.
    pub attempt: u64,
    /// Milliseconds from the arrival of the news to the next try.
    pub retry_after_ms: u64,
    /// The message id of the turn.
    pub message_id: String,
}

impl ModelWait {
    /// Returns a sentence for people, `waited_ms` milliseconds after the arrival of the news.
    pub fn sentence(&self, waited_ms: u64) -> String {
        let what = match self.code.as_str() {
            "llm_overloaded" => "The provider is overloaded",
            "llm_rate_limited" => "The provider limits the rate of calls",
            _ => "The provider is not available",
        };
        let attempt = self.attempt;
        match self.retry_after_ms.saturating_sub(waited_ms).div_ceil(1000) {
            0 => format!("{what}; attempt {attempt} runs"),
            seconds => format!("{what}; next try in {seconds} s (attempt {attempt})"),
        }
    }
}

/// The waiting calls of a conversation, at most one of each agent execution.
#[derive(Debug, Default)]
pub(super) struct Waits(pub(super) Vec<ModelWait>);

impl Waits {
    /// Takes the news of a waiting call. Returns true when the calls changed.
    pub(super) fn apply(&mut self, data: Fields<'_>) -> bool {
        let counts = ["step", "attempt", "retry_after_ms"].map(|name| data.count(name));
        let [Some(step), Some(attempt), Some(retry_after_ms)] = counts else {
            return false;
        };
        let wait = ModelWait {
            agent_execution_id: data.text("agent_execution_id").to_owned(),
            step,
            code: data.text("code").to_owned(),
            message: data.text("message").to_owned(),
            attempt,
            retry_after_ms,
            message_id: data.text("message_id").to_owned(),
        };
        self.drop_of(&wait.agent_execution_id);
        self.0.push(wait);
        let excess = self.0.len().saturating_sub(MAX_WAITS);
        self.0.drain(..excess);
        true
    }

    /// Drops the waiting call of an agent execution. Returns true if the call was there.
    pub(super) fn drop_of(&mut self, agent_execution_id: &str) -> bool {
        let before = self.0.len();
        self.0
            .retain(|wait| wait.agent_execution_id != agent_execution_id);
        self.0.len() < before
    }

    /// Drops every waiting call. Returns true when the list was not empty.
    pub(super) fn clear(&mut self) -> bool {
        let had = !self.0.is_empty();
        self.0.clear();
        had
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::state::Conversation;

    fn wait(agent: &str, code: &str, attempt: u64) -> serde_json::Value {
        json!({
            "type": "model_waiting", "message_id": "m", "agent_execution_id": agent, "step": 0, "code": code,
            "message": "It is busy.", "attempt": attempt, "retry_after_ms": 12_000,
        })
    }

    #[test]
    fn a_wait_lasts_until_its_model_writes() {
        let mut state = Conversation::default();
        assert!(state.apply(None, wait("run_1", "llm_unavailable", 2)));
        assert!(state.apply(None, wait("run_2", "llm_unavailable", 2)));
        assert!(state.apply(None, wait("run_1", "llm_overloaded", 4)));
        let attempts: Vec<_> = state.waits().iter().map(|wait| wait.attempt).collect();
        assert_eq!(attempts, [2, 4]);
        let written = serde_json::to_value(&state).unwrap();
        assert_eq!(written["waits"][1]["retryAfterMs"], 12_000);
        let last = state.waits().last().unwrap();
        assert_eq!(
            last.sentence(500),
            "The provider is overloaded; next try in 12 s (attempt 4)"
        );
        assert_eq!(
            last.sentence(13_000),
            "The provider is overloaded; attempt 4 runs"
        );
        let text = json!({"type": "text_start", "agent_execution_id": "run_1", "step": 0, "part": "text", "generation": 4});
        assert!(state.apply(None, text));
        assert_eq!(state.waits().len(), 1);
        assert!(state.apply(None, json!({"type": "replay"})));
        assert!(state.waits().is_empty());
    }
}
