//! The outcome of a call: an answer, tools to run, a summary, or the reason for a missing reply. Plain data.

use everturn_models::{ModelError, ModelReply};
use everturn_proto::turn::{LlmCompleteState, SentContext};
use everturn_tools::ToolSpec;
use temporalio_common::ActivityError;

/// The outcome of a step's call.
pub(super) enum Reply {
    /// An answer, or tools to run.
    Said(Said),
    /// The checkpoint with the summary.
    Compacted(LlmCompleteState),
}

impl Reply {
    /// Returns the tokens of the call, by the provider's count or the estimate.
    pub(super) fn tokens(&self) -> u64 {
        let (read, written) = match self {
            Self::Said(said) => {
                let usage = said.reply.usage;
                (usage.input_tokens, usage.output_tokens)
            }
            Self::Compacted(state) => (state.input_tokens, state.output_tokens),
        };
        u64::from(read) + u64::from(written)
    }
}

/// The model's reply, and the request's content.
pub(super) struct Said {
    pub(super) offered: Vec<ToolSpec>,
    pub(super) sent: SentContext,
    pub(super) reply: ModelReply,
    /// True when the agent execution has given an answer before.
    pub(super) has_answered: bool,
}

/// The reason for a call without a reply.
pub(super) enum Failed {
    /// The model has failed, and another model may be asked.
    Model(ModelError),
    /// The failure has another cause than the model.
    Other(ActivityError),
}

impl From<ActivityError> for Failed {
    fn from(error: ActivityError) -> Self {
        Self::Other(error)
    }
}
