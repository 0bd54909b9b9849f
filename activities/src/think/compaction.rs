//! A step whose context does not fit: instead of thinking, the model writes a summary, which from then on replaces
//! older messages. The step is claimed, checkpointed and paid like any other (invariant 5, paid once).

use everturn_models::{ModelClient, ModelError, ModelReply, ModelRequest, Usage};
use everturn_proto::{
    Thread,
    limits::MAX_SUMMARY_BYTES,
    turn::{LlmCompleteState, SentContext},
    words::{FailureCode, FinishReason, MessageRole, OnFullContext},
};
use everturn_store::{ContextMessage, model_input::SUMMARIZE};
use everturn_stream::Part;

use super::{
    budget::{Budget, is_refused},
    checkpoint,
    claimed::Claimed,
    pick::Pick,
    reply::Failed,
    window::{self, OldPart, Window},
};
use crate::{failure as fail, storable::without_nul};

/// Compacts a context that does not fit.
pub(super) struct Compaction<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) model: &'a dyn ModelClient,
    pub(super) budget: Budget<'a>,
    /// The number of the step's calls, this call included.
    pub(super) calls: u32,
}

impl Compaction<'_> {
    /// Makes the checkpoint of the step: the summary that replaces the old part of the context.
    pub(super) async fn run(
        &self,
        pick: &Pick<'_>,
        request: ModelRequest,
        mut part: OldPart,
        window: Window,
    ) -> Result<LlmCompleteState, Failed> {
        let agent = &*pick.agent;
        let kept = &mut part.compacted.kept_message_ids;
        kept.extend(self.retry(&request.messages));
        let (reply, sent) = match agent.policy_on_full_context() {
            OnFullContext::Summarize | OnFullContext::Unknown(_) if part.begin < part.end => {
                self.summarize(pick, request, &part, window).await?
            }
            _ => (ModelReply::default(), None),
        };
        let sent = sent.map(|sent| SentContext {
            received_characters: checkpoint::received(&reply),
            ..sent
        });
        let mut summary = without_nul(reply.text);
        summary.truncate(summary.floor_char_boundary(MAX_SUMMARY_BYTES));
        Ok(LlmCompleteState {
            text: summary,
            finish: FinishReason::Compacted.into(),
            sent: sent.map(Box::new),
            compacted: Some(Box::new(part.compacted)),
            ..checkpoint::answered(self.claimed, agent, reply.usage)?
        })
    }

    /// Returns the id of the turn's own message if the message is a retry, because the context has no retries. The next
    /// contexts need the retry to know the question of the turn.
    fn retry(&self, messages: &[ContextMessage]) -> Option<String> {
        let id = &self.claimed.step.message_id;
        let has_message = messages.iter().any(|message| message.id == *id);
        let is_retry = self.claimed.thread == Thread::Conversation && !has_message;
        is_retry.then(|| id.clone())
    }

    /// Asks the model for the summary. When the model fails, the summary is empty: a turn without its oldest messages
    /// is worth more than a failed turn.
    async fn summarize(
        &self,
        pick: &Pick<'_>,
        request: ModelRequest,
        part: &OldPart,
        window: Window,
    ) -> Result<(ModelReply, Option<SentContext>), Failed> {
        let mut request = ModelRequest {
            messages: to_summarize(request.messages, part),
            // The call has no name, so its response is not in the background: another attempt may compact other
            // messages, and must not use this summary. A summary that is cut off is written and paid again.
            idempotency_key: String::new(),
            attached: None,
            wants_text: true,
            ..request
        };
        let bytes = window::request_bytes(&request);
        let tokens = window.tokens(bytes);
        request.estimate = window.estimate(&pick.agent, bytes);
        self.budget.reserve(pick, tokens).await?;
        let most = request.estimate.most();
        let sent = window::sent(&request, &[]);
        // The summary has no readers while the model writes it.
        let answered = self
            .model
            .complete(request, &mut |_: Part, _: &str| {})
            .await;
        let error = match answered {
            Ok(reply) if !reply.text.trim().is_empty() => return Ok((reply, Some(sent))),
            Ok(reply) if self.calls >= fail::UNUSABLE_REPLIES => {
                return Ok((
                    ModelReply {
                        text: String::new(),
                        ..reply
                    },
                    Some(sent),
                ));
            }
            Ok(_) => ModelError::new(
                FailureCode::LlmInvalidResponse,
                "The model was asked to summarize the conversation, and wrote nothing.",
            ),
            Err(error) => {
                self.budget.give_back(&error, None).await;
                error
            }
        };
        // The provider probably bills a call that it has not refused.
        let usage = if is_refused(&error, None) {
            Usage::default()
        } else {
            most
        };
        let is_last = error.code.is_repeated_once() && self.calls >= fail::UNUSABLE_REPLIES;
        if !error.code.is_about_the_request() && !is_last {
            return Err(Failed::Model(error));
        }
        tracing::warn!(
            conversation_id = self.claimed.step.conversation_id,
            %error,
            "older messages are left out without a summary, because the model could not write a summary"
        );
        let nothing = ModelReply {
            usage,
            ..ModelReply::default()
        };
        Ok((nothing, None))
    }
}

/// Returns the messages to replace, as they were sent until now, and the instruction.
fn to_summarize(mut messages: Vec<ContextMessage>, part: &OldPart) -> Vec<ContextMessage> {
    messages.truncate(part.end);
    let earlier = messages
        .first()
        .filter(|first| first.role == MessageRole::Summary);
    let earlier = earlier.filter(|_| part.begin > 0).cloned();
    let rest = messages.drain(part.begin..);
    let mut asked: Vec<_> = earlier.into_iter().chain(rest).collect();
    asked.push(ContextMessage::text(MessageRole::User, SUMMARIZE));
    asked
}
