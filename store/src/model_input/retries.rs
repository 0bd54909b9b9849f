//! Retries of failed turns in the context: the steps of a failed turn count as steps of its retry. Pure.

use std::collections::BTreeMap;

use everturn_proto::{ids, words::MessageRole};

use crate::api::ContextMessage;

/// Leaves the retries themselves out of the context, and gives the messages of a retried turn to the agent execution of
/// the newest retry. The question and the results of hooks therefore belong to the running turn.
pub fn join_retries(messages: &mut Vec<ContextMessage>, conversation_id: &str) {
    let is_retry = |message: &&ContextMessage| message.role == MessageRole::Retry;
    let mut retries: Vec<_> = messages.iter().filter(is_retry).cloned().collect();
    if retries.is_empty() {
        return;
    }
    retries.sort_by_key(|retry| retry.sequence_number);
    // Every retry of a turn names the message that began the turn. The newest retry comes last.
    let newest: BTreeMap<_, _> = retries
        .iter()
        .map(|retry| (&retry.content, &retry.agent_execution_id))
        .collect();
    let mut owners = BTreeMap::new();
    for retry in &retries {
        let first = ids::root_agent_execution_id(conversation_id, &retry.content);
        for older in [first, retry.agent_execution_id.clone()] {
            owners.insert(older, newest[&retry.content]);
        }
    }
    messages.retain(|message| message.role != MessageRole::Retry && !is_empty(message));
    for message in messages {
        if let Some(owner) = owners.get(&message.agent_execution_id) {
            message.agent_execution_id.clone_from(owner);
        }
    }
}

/// True for the message of a retry's step without hooks, because the hooks have run in the failed turn.
fn is_empty(message: &ContextMessage) -> bool {
    message.role == MessageRole::Assistant
        && message.content.is_empty()
        && message.tool_calls.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: MessageRole, content: &str, of: &str, sequence: u32) -> ContextMessage {
        ContextMessage {
            agent_execution_id: of.to_owned(),
            sequence_number: sequence,
            ..ContextMessage::text(role, content)
        }
    }

    fn joined(mut messages: Vec<ContextMessage>) -> Vec<(String, String)> {
        join_retries(&mut messages, "c");
        let messages = messages.into_iter();
        messages
            .map(|message| (message.content, message.agent_execution_id))
            .collect()
    }

    #[test]
    fn the_steps_of_failed_turns_belong_to_the_newest_retry() {
        let first = ids::root_agent_execution_id("c", "m");
        let messages = vec![
            message(MessageRole::User, "old", "run_old", 1),
            message(MessageRole::User, "ask", &first, 2),
            message(MessageRole::Assistant, "said", &first, 3),
            message(MessageRole::Retry, "m", "run_2", 4),
            message(MessageRole::Assistant, "", "run_2", 5),
            message(MessageRole::Assistant, "more", "run_2", 6),
            message(MessageRole::Retry, "m", "run_3", 7),
        ];
        let of_newest = |text: &str| (text.to_owned(), "run_3".to_owned());
        assert_eq!(
            joined(messages),
            [
                ("old".to_owned(), "run_old".to_owned()),
                of_newest("ask"),
                of_newest("said"),
                of_newest("more"),
            ]
        );
    }

    #[test]
    fn a_context_without_retries_stays_as_it_is() {
        let empty = message(MessageRole::Assistant, "", "run", 1);
        assert_eq!(joined(vec![empty]), [(String::new(), "run".to_owned())]);
    }
}
