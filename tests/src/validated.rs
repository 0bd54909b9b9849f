//! The validators of requests before the scripted models: a request that a real provider would refuse is refused here.

use everturn_models::refused::{Who, problems};
use serde_json::Value;

/// Returns the words for refusing a request; `None` when the providers take it.
pub(crate) fn refusal(whose: &[Who], body: &Value) -> Option<String> {
    let found: Vec<String> = whose.iter().flat_map(|who| problems(*who, body)).collect();
    if found.is_empty() {
        return None;
    }
    let words = format!("refused by the validator: {}", found.join("; "));
    // The test may await another error, and hide this one.
    eprintln!("{words}\n{body}");
    Some(words)
}
