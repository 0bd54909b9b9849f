//! Replies that the limit of tokens cuts in the middle of a tool call. No cut call runs, and the model tries again in the
//! next step. A model whose limit is too small for the arguments of its calls would try until the agent's steps are used
//! up, and every try is paid.

use everturn_proto::{
    turn::ThinkResult,
    words::{FailureCode, FinishReason},
};

use crate::calls::Failure;

/// The replies in a row that may be cut in a call: the first cut tells the model of the limit, and the second shows
/// whether the model can write less. A third cut reply shows that the model cannot.
const MAX_CUT_REPLIES: u32 = 3;

/// Counts the replies in a row that were cut in a call. A new run of the turn begins at 0, so the turn may have a few
/// more cut replies than without the new run.
#[derive(Debug, Default)]
pub(crate) struct CutReplies(u32);

impl CutReplies {
    /// Notes a reply. Returns the reason for the turn's end after too many cut replies.
    pub(crate) fn note(&mut self, thought: &ThinkResult) -> Option<Failure> {
        if thought.finish() == FinishReason::Compacted {
            return None;
        }
        self.0 = if thought.has_cut_call { self.0 + 1 } else { 0 };
        (self.0 >= MAX_CUT_REPLIES).then(cut_too_often)
    }
}

fn cut_too_often() -> Failure {
    Failure {
        code: FailureCode::LlmReplyCut,
        message: format!(
            "The limit of tokens cut {MAX_CUT_REPLIES} replies of the model in a row in the middle of a tool call. \
             Raise `max_output_tokens` of the agent, or ask for less in one call."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cut_replies_in_a_row_end_the_turn() {
        let reply = |finish: FinishReason, has_cut_call| ThinkResult {
            finish: finish.into(),
            has_cut_call,
            ..ThinkResult::default()
        };
        let cut = || reply(FinishReason::ToolCalls, true);
        let mut replies = CutReplies::default();
        assert!(replies.note(&cut()).is_none());
        assert!(replies.note(&cut()).is_none());
        assert!(
            replies
                .note(&reply(FinishReason::ToolCalls, false))
                .is_none()
        );
        assert!(replies.note(&cut()).is_none());
        assert!(
            replies
                .note(&reply(FinishReason::Compacted, false))
                .is_none()
        );
        assert!(replies.note(&cut()).is_none());
        let failure = replies.note(&cut()).unwrap();
        assert_eq!(failure.code, FailureCode::LlmReplyCut);
        assert!(failure.message.contains("`max_output_tokens`"));
    }
}
