//! The results of tools, shortened for the window of a model.

use everturn_proto::money::ASSUMED_BYTES_PER_TOKEN;

use crate::api::{ContextMessage, ToolResult};

/// The context window of a model without a configured window, in tokens: the window of most hosted models today.
pub const DEFAULT_WINDOW: u32 = 128_000;

/// The largest share of the window for the results of one step. Longer results are shortened, so that a window always
/// has room for the last step.
const STEP_PERCENT: u64 = 25;

/// The estimated bytes of a result beside its texts.
const RESULT_BYTES: usize = 32;

/// Shortens the results of steps that would take too much of a window of `window_tokens` tokens. The shortening depends
/// on no changing fact of a conversation, so that every request repeats the text of the request before. Returns
/// whether a result was shortened. Files of a result do not count, because shortening leaves the files as they are.
pub fn shorten_results(messages: &mut [ContextMessage], window_tokens: u64) -> bool {
    let most = window_tokens * STEP_PERCENT / 100 * ASSUMED_BYTES_PER_TOKEN;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut has_shortened = false;
    for message in messages {
        let bytes: usize = message.tool_results.iter().map(bytes_of).sum();
        if bytes > most {
            let each = most / message.tool_results.len();
            for result in &mut message.tool_results {
                result.shorten(each);
            }
            has_shortened = true;
        }
    }
    has_shortened
}

fn bytes_of(result: &ToolResult) -> usize {
    RESULT_BYTES + result.call_id.len() + result.result.as_str().len()
}

#[cfg(test)]
mod tests {
    use everturn_proto::{Json, words::MessageRole};

    use super::*;

    fn result(bytes: usize) -> ToolResult {
        ToolResult {
            execution_id: "exec".into(),
            call_id: "call".into(),
            tool_name: "tool".into(),
            result: Json::of(&"x".repeat(bytes)),
            is_error: false,
        }
    }

    #[test]
    fn results_of_one_step_are_shortened_to_a_part_of_the_window() {
        let mut small = ContextMessage::text(MessageRole::Assistant, "");
        small.tool_results = vec![result(2900), result(2900)];
        let mut large = ContextMessage::text(MessageRole::Assistant, "");
        large.tool_results = vec![result(6000), result(10)];
        let mut messages = [small.clone(), large];
        // 25 % of 10,000 tokens are 7,500 bytes.
        assert!(!shorten_results(&mut messages, 10_000));
        assert!(shorten_results(&mut messages, 8_000));
        assert_eq!(messages[0], small);
        let [first, second] = messages[1].tool_results.as_slice() else {
            panic!("two results")
        };
        assert!(
            first.result.as_str().len() < 3500,
            "{}",
            first.result.as_str().len()
        );
        assert!(first.result.as_str().contains("read_result"));
        assert_eq!(second, &result(10));
    }
}
