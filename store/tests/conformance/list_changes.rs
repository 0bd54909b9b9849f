//! The versions of lists: a change that a list shows gives the list another version, and every other list keeps its
//! version.

use chrono::{TimeDelta, Utc};
use everturn_proto::{
    turn::{SaveApproval, ToolCall, save_request::Batch},
    words::{AgentExecutionStatus, ApprovalState, Effect, ToolKind},
};
use everturn_store::{
    Access, ConversationChange, Conversations, ListVersion, MessageQueue, NewConversation,
    OutsideTools, ResultSender, Retention, StepClaims,
};

use super::{
    Backend,
    fixture::{Turn, TurnStore, state, tenant, tool_end},
};

/// The versions of four lists as a gateway has read them: the lists of Ann, of her tenant, of Bob, and of another tenant.
pub struct Lists<S> {
    store: S,
    seen: Vec<ListVersion>,
}

impl<S: Conversations> Lists<S> {
    /// Reads the versions for the first time.
    pub async fn of(store: S) -> Self {
        let seen = Vec::new();
        let mut lists = Self { store, seen };
        lists.read().await;
        lists
    }

    /// Reads the versions. Returns the versions that were read before.
    async fn read(&mut self) -> Vec<ListVersion> {
        let callers = [
            ann(),
            tenant(),
            Access::owner("default", "bob"),
            Access::tenant("another"),
        ];
        let versions = self.store.list_versions(&callers).await.unwrap();
        std::mem::replace(&mut self.seen, versions)
    }

    /// Checks which lists have changed since the last check.
    async fn check(&mut self, expected: [bool; 4], change: &str) {
        let before = self.read().await;
        let pairs = before.iter().zip(&self.seen);
        let changed: Vec<_> = pairs.map(|(before, now)| before != now).collect();
        assert_eq!(changed, expected, "{change}");
    }

    /// Checks that the list of Ann and the list of her tenant have changed, and no other list.
    pub async fn have_anns_change(&mut self, change: &str) {
        self.check([true, true, false, false], change).await;
    }

    /// Checks that no list has changed.
    pub async fn are_quiet(&mut self, change: &str) {
        self.check([false; 4], change).await;
    }

    /// Returns true when Ann's list has no version, because Ann has no conversation.
    pub fn have_forgotten_ann(&self) -> bool {
        self.seen[0] == ListVersion::default()
    }
}

fn ann() -> Access {
    Access::owner("default", "ann")
}

/// Creates a conversation of Ann.
pub async fn create_anns(store: &impl Conversations, name: &str) {
    let new = NewConversation::new(name, ann(), "a");
    assert!(store.create_conversation(new).await.unwrap().is_some());
}

/// Saves a step with a call that needs an approval and a call that the client runs.
async fn asks_others(turn: &Turn<impl TurnStore>, step: u32) {
    let approved = ToolCall {
        approval_timeout_s: Some(60),
        ..turn.call(step, 0, Effect::Once)
    };
    let client = ToolCall {
        kind: ToolKind::Client.into(),
        ..turn.call(step, 1, Effect::Once)
    };
    let asked = state("look", vec![approved, client]);
    let stored = turn.store.complete_step(&turn.step(step), asked).await;
    stored.unwrap();
    turn.thought(step).await;
}

pub async fn a_list_changes_with_its_conversations(backend: &impl Backend) {
    let store = backend.open().await;
    let mut lists = Lists::of(backend.open().await).await;
    create_anns(&store, "c").await;
    lists.have_anns_change("a new conversation").await;
    create_anns(&store, "c").await;
    lists.are_quiet("a repeated creation").await;
    let title = ConversationChange::of_title("Sums");
    let bob = Access::owner("default", "bob");
    let changed = store.change_conversation(&bob, "c", &title).await;
    assert_eq!(changed.unwrap(), None);
    lists.are_quiet("a change without the right").await;
    let changed = store.change_conversation(&ann(), "c", &title).await;
    assert!(changed.unwrap().is_some());
    lists.have_anns_change("a new title").await;
    Turn::begun(store, "shared", "m").await;
    let of_tenant = [false, true, false, false];
    lists
        .check(of_tenant, "a conversation without an owner")
        .await;
}

pub async fn a_list_changes_with_messages_and_turns(backend: &impl Backend) {
    let store = backend.open().await;
    create_anns(&store, "c").await;
    let mut lists = Lists::of(backend.open().await).await;
    let turn = Turn::new(store.clone(), "c", "m");
    turn.queue("m").await;
    lists.have_anns_change("a waiting message").await;
    turn.queue("m").await;
    lists.are_quiet("a repeated message").await;
    turn.begin_again().await;
    lists.have_anns_change("the begin of a turn").await;
    turn.queue("later").await;
    lists.have_anns_change("a message behind the turn").await;
    let withdrawn = store.withdraw_message(&tenant(), "c", "later").await;
    assert!(withdrawn.unwrap());
    lists.have_anns_change("a withdrawn message").await;
    turn.steer("s", "and this").await;
    lists.have_anns_change("a message in the turn").await;
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    lists.have_anns_change("the end of the turn").await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    lists.are_quiet("a repeated end").await;
}

pub async fn the_middle_of_a_turn_changes_no_list(backend: &impl Backend) {
    let store = backend.open().await;
    create_anns(&store, "c").await;
    let turn = Turn::begun(store.clone(), "c", "m").await;
    let begun = turn.conversation().await;
    let mut lists = Lists::of(backend.open().await).await;
    store.claim_step(&turn.step(0), None).await.unwrap();
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    lists.are_quiet("a step with a tool").await;
    let saved = turn.conversation().await;
    assert!(saved.last_sequence > begun.last_sequence);
    assert_eq!(saved.active_at, begun.active_at, "the rank stays");
    turn.end(1, AgentExecutionStatus::Cancelled).await;
    lists.have_anns_change("a cancelled turn").await;
    assert!(turn.conversation().await.active_at >= begun.active_at);
}

pub async fn a_list_changes_with_waiting_calls(backend: &impl Backend) {
    let store = backend.open().await;
    create_anns(&store, "c").await;
    let turn = Turn::begun(store.clone(), "c", "m").await;
    let mut lists = Lists::of(backend.open().await).await;
    asks_others(&turn, 0).await;
    lists.have_anns_change("two waiting calls").await;
    let (access, client) = (ann(), turn.execution_id(0, 1));
    for (change, is_first) in [("the client's result", true), ("a second result", false)] {
        let end = tool_end("1");
        let sender = ResultSender::Client;
        let stored = store.store_result(&access, "c", &client, sender, end);
        assert!(stored.await.unwrap().is_some());
        if is_first {
            lists.have_anns_change(change).await;
        } else {
            lists.are_quiet(change).await;
        }
    }
    turn.observe(0, 1, "").await;
    lists.are_quiet("the observe of the result").await;
    let answer = SaveApproval {
        execution_id: turn.execution_id(0, 0),
        decision: ApprovalState::Denied.into(),
        reason: Some("because".into()),
        input_hash: "shown".into(),
        ..SaveApproval::default()
    };
    turn.save(0, Batch::Approval(answer)).await;
    lists.have_anns_change("a denied approval").await;
    asks_others(&turn, 1).await;
    lists.have_anns_change("two more waiting calls").await;
    turn.observe(1, 1, "the client sent no result").await;
    lists.have_anns_change("a result that did not come").await;
    turn.end(1, AgentExecutionStatus::Cancelled).await;
    lists.have_anns_change("the end with a waiting call").await;
}

pub async fn a_list_changes_with_removals(backend: &impl Backend) {
    let store = backend.open().await;
    for name in ["a", "b", "c"] {
        create_anns(&store, name).await;
    }
    let mut lists = Lists::of(backend.open().await).await;
    let removed = store.delete_conversation(&ann(), "a", None).await;
    assert!(removed.unwrap());
    lists.have_anns_change("a deleted conversation").await;
    assert!(!lists.have_forgotten_ann());
    let soon = Utc::now() + TimeDelta::hours(1);
    let batch = store.remove_expired(soon, None, 1).await.unwrap();
    assert_eq!(batch.removed.conversations, 1);
    lists.have_anns_change("an expired conversation").await;
    assert!(!lists.have_forgotten_ann());
    store.remove_expired(soon, None, 10).await.unwrap();
    lists.have_anns_change("the last conversation").await;
    assert!(lists.have_forgotten_ann(), "no row is left of the owner");
    create_anns(&store, "a").await;
    lists.have_anns_change("a conversation after all").await;
}
