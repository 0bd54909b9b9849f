//! The checks at the end of a simulation, when everything has come to its end.

use everturn_proto::{Json, event::Event, ids};
use everturn_store::{Access, Conversations, EventReader, PageLimit};
use serde_json::Value;

use super::{Simulation, client::CONVERSATION};

/// The most events and bytes of a log in a simulation.
const WHOLE_LOG: PageLimit = PageLimit {
    rows: 10_000,
    bytes: u32::MAX,
};

impl Simulation {
    /// Checks the end: every accepted message has one end, and nothing waits.
    pub(super) async fn check_end(&self) -> anyhow::Result<()> {
        if !self.world.facts().violations.is_empty() {
            return Ok(());
        }
        let access = Access::tenant("default");
        let store = &self.world.store;
        let Some(conversation) = store.conversation(&access, CONVERSATION).await? else {
            let mut facts = self.world.facts();
            let lost = facts.accepted.first().cloned();
            facts
                .violations
                .extend(lost.map(|id| format!("{id} was accepted, and the conversation is gone")));
            return Ok(());
        };
        let page = store
            .events(&access, &conversation.log(), 0, WHOLE_LOG)
            .await?;
        self.world.facts().promises.check_log(&page.events);
        let mut violations = Vec::new();
        for message_id in &self.world.facts().accepted {
            violations.extend(check_message(&page.events, &conversation.id, message_id));
        }
        self.world.facts().violations.append(&mut violations);
        self.check_told(&conversation.id).await
    }
}

/// Checks that every accepted message has one end, or has joined a turn. A message enters the log once.
fn check_message(events: &[Event], conversation_id: &str, message_id: &str) -> Option<String> {
    let root = ids::root_agent_execution_id(conversation_id, message_id);
    let of_turn = events
        .iter()
        .filter(|event| data(event)["agent_execution_id"] == root.as_str());
    let is_end = |event: &&Event| {
        matches!(
            event.event_type.as_str(),
            "complete" | "cancelled" | "error"
        )
    };
    let ends = of_turn.filter(is_end).count();
    let entries = events.iter().filter(|event| {
        event.event_type == "user_message" && data(event)["message_id"] == message_id
    });
    let entries = entries.count();
    let is_fine = entries == 1 && ends <= 1;
    (!is_fine).then(|| format!("{message_id} has {ends} ends, and enters the log {entries} times"))
}

fn data(event: &Event) -> Value {
    let data = event.event_data.as_ref().map(Json::to_value);
    data.unwrap_or_default()
}
