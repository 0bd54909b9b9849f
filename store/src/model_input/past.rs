//! The input of a past call, made again from stored messages and the facts that the call left in its checkpoint.

use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState, SentContext},
    words::{FinishReason, MessageRole},
};

use super::{
    DEFAULT_WINDOW, LAST_WORDS, SUMMARIZE,
    hook_results::{insert_hook_results, is_of_hooks},
    retries::join_retries,
    shorten_results,
};
use crate::api::{ContextMessage, PastInput};

impl PastInput {
    /// Makes the messages of an agent execution's call again. `stored` are the stored messages of the call's context.
    pub fn rebuild(
        state: &LlmCompleteState,
        sent: &SentContext,
        agent: &AgentDefinition,
        (conversation_id, agent_execution_id): (&str, &str),
        stored: Vec<ContextMessage>,
    ) -> Self {
        let mut messages = stored;
        // The hooks before a turn have run after the task, and stand before the task in every call.
        let is_sent = |message: &ContextMessage| {
            message.sequence_number <= sent.last_sequence
                || is_of_hooks(message)
                // A retry itself is not sent, and may follow the last sent message.
                || (message.role == MessageRole::Retry
                    && message.agent_execution_id == agent_execution_id)
        };
        messages.retain(is_sent);
        join_retries(&mut messages, conversation_id);
        let hooks = agent.hooks.as_ref();
        let max_result_bytes = hooks.map_or(0, |hooks| hooks.max_result_bytes as usize);
        insert_hook_results(&mut messages, agent_execution_id, max_result_bytes);
        shorten_results(&mut messages, u64::from(window_of(agent, state)));
        let noted = sent.messages as usize;
        match state.finish() {
            FinishReason::Compacted => {
                leave_out_oldest(&mut messages, noted.saturating_sub(1));
                messages.push(ContextMessage::text(MessageRole::User, SUMMARIZE));
            }
            FinishReason::StepLimit => {
                messages.push(ContextMessage::text(MessageRole::User, LAST_WORDS));
            }
            FinishReason::Stop
            | FinishReason::ToolCalls
            | FinishReason::Cancelled
            | FinishReason::Length
            | FinishReason::InvalidOutput
            | FinishReason::Unknown(_) => {}
        }
        let instructions = Some(agent.instructions.as_str()).filter(|text| !text.trim().is_empty());
        let is_exact =
            messages.len() == noted && characters(instructions, &messages) == sent.characters;
        Self { messages, is_exact }
    }
}

/// Leaves out the oldest messages, so that `most` messages remain. An earlier summary remains.
fn leave_out_oldest(messages: &mut Vec<ContextMessage>, most: usize) {
    let surplus = messages.len().saturating_sub(most);
    let is_summary = |message: &ContextMessage| message.role == MessageRole::Summary;
    let begin = usize::from(surplus > 0 && messages.first().is_some_and(is_summary));
    let end = (begin + surplus).min(messages.len());
    messages.drain(begin..end);
}

/// Returns the window of the model that answered, in tokens.
fn window_of(agent: &AgentDefinition, state: &LlmCompleteState) -> u32 {
    let is_own = agent.provider == state.provider && agent.model.as_ref() == Some(&state.model);
    let others = agent.fallback.iter().flat_map(|chain| &chain.models);
    let mut others =
        others.filter(|other| other.provider == state.provider && other.model == state.model);
    let window = if is_own {
        agent.context_window
    } else {
        others.next().and_then(|other| other.context_window)
    };
    window.unwrap_or(DEFAULT_WINDOW)
}

/// Returns the characters of the instructions and of the messages, with the inputs and results of tools.
pub fn characters(instructions: Option<&str>, messages: &[ContextMessage]) -> u32 {
    let count = |text: &str| text.chars().count();
    let texts = messages.iter().map(|message| {
        let calls = message.tool_calls.iter();
        let inputs = calls.filter_map(|call| call.tool_input.as_ref());
        let inputs: usize = inputs.map(|input| count(input.as_str())).sum();
        let results = message.tool_results.iter();
        let results: usize = results.map(|result| count(result.result.as_str())).sum();
        count(&message.content) + inputs + results
    });
    let characters = instructions.map_or(0, count) + texts.sum::<usize>();
    u32::try_from(characters).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u32, role: MessageRole, text: &str) -> ContextMessage {
        ContextMessage {
            sequence_number: sequence,
            ..ContextMessage::text(role, text)
        }
    }

    fn agent() -> AgentDefinition {
        AgentDefinition {
            instructions: "Be brief.".into(),
            ..AgentDefinition::default()
        }
    }

    /// Rebuilds a call that ended with `finish` and noted `messages` messages and `characters` characters.
    fn rebuilt(
        finish: FinishReason,
        messages: u32,
        characters: u32,
        stored: &[ContextMessage],
    ) -> PastInput {
        let state = LlmCompleteState {
            finish: finish.into(),
            ..LlmCompleteState::default()
        };
        let sent = SentContext {
            messages,
            characters,
            last_sequence: 9,
            ..SentContext::default()
        };
        PastInput::rebuild(&state, &sent, &agent(), ("c", "run"), stored.to_vec())
    }

    #[test]
    fn a_call_has_the_stored_messages_of_its_context() {
        let stored = [
            message(1, MessageRole::User, "ask"),
            message(3, MessageRole::Assistant, "said"),
        ];
        let past = rebuilt(FinishReason::Stop, 2, 9 + 7, &stored);
        assert_eq!(
            (past.messages.as_slice(), past.is_exact),
            (&stored[..], true)
        );
        let other = rebuilt(FinishReason::Stop, 2, 9 + 8, &stored);
        assert!(!other.is_exact, "the call has read other texts");
        let more = rebuilt(FinishReason::Stop, 3, 9 + 7, &stored);
        assert!(!more.is_exact, "the call has read another message");
    }

    #[test]
    fn a_last_summary_and_a_compaction_end_with_their_instruction() {
        let stored = [message(1, MessageRole::User, "ask")];
        for (finish, text) in [
            (FinishReason::StepLimit, LAST_WORDS),
            (FinishReason::Compacted, SUMMARIZE),
        ] {
            let count = 9 + 3 + u32::try_from(text.chars().count()).unwrap();
            let past = rebuilt(finish, 2, count, &stored);
            assert!(past.is_exact);
            assert_eq!(past.messages[1].content, text);
        }
    }

    #[test]
    fn a_compaction_without_room_kept_the_earlier_summary_and_the_newest_messages() {
        let stored = [
            message(4, MessageRole::Summary, "before"),
            message(5, MessageRole::User, "left out"),
            message(6, MessageRole::User, "read"),
        ];
        let past = rebuilt(FinishReason::Compacted, 3, 0, &stored);
        let texts: Vec<_> = past.messages.iter().map(|it| it.content.as_str()).collect();
        assert_eq!(texts, ["before", "read", SUMMARIZE]);
    }
}
