//! Queries of a state: the answer of a turn, and the calls that wait for a person.

use super::{
    Conversation,
    calls::{CallState, ToolCall},
    items::{End, EndKind, Item, ItemKind},
};
use crate::words::FinishReason;

impl Conversation {
    /// Returns the end of the turn that took a message; `None` for an unfinished or unknown turn. A message that joined
    /// a turn (`steer`) has the end of the joined turn.
    pub fn end_of_turn(&self, message_id: &str) -> Option<&End> {
        self.end_item(message_id).map(|(_, end)| end)
    }

    /// Returns the answer of the turn that took a message; `None` without an answer. A provider may have cut the answer
    /// into several items. The function joins the texts of the items.
    pub fn answer_of_turn(&self, message_id: &str) -> Option<String> {
        let (last, end) = self.end_item(message_id)?;
        if end.outcome != EndKind::Complete {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        let items = self.items().iter().rev();
        let own = items.filter(|item| item.turn == last.turn && item.agent_execution_id.is_none());
        for item in own {
            let ItemKind::AssistantMessage {
                content, finish, ..
            } = &item.kind
            else {
                continue;
            };
            if !parts.is_empty() && finish.as_ref() != Some(&FinishReason::Length) {
                break;
            }
            parts.push(content);
        }
        parts.reverse();
        Some(parts.concat())
    }

    /// Returns the calls that wait for a person, with their items.
    pub fn pending_approvals(&self) -> impl Iterator<Item = (&Item, &ToolCall)> {
        self.items().iter().filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) if is_pending(call) => Some((item, call.as_ref())),
            _ => None,
        })
    }

    fn end_item(&self, message_id: &str) -> Option<(&Item, &End)> {
        let items = self.items();
        let is_it = |item: &Item| {
            matches!(item.kind, ItemKind::UserMessage { .. }) && item.id == message_id
        };
        let at = items.iter().rposition(is_it);
        let turn = at.map_or(Some(message_id), |at| items[at].turn.as_deref());
        let mut from_it = items[at.unwrap_or_default()..].iter();
        from_it.find_map(|item| match &item.kind {
            ItemKind::End(end)
                if item.turn.as_deref() == turn && item.agent_execution_id.is_none() =>
            {
                Some((item, end.as_ref()))
            }
            _ => None,
        })
    }
}

fn is_pending(call: &ToolCall) -> bool {
    call.state == CallState::Running && call.has_pending_approval()
}
