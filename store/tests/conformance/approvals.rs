//! Who may answer an approval, and what an approval is bound to.

use chrono::{SecondsFormat, TimeDelta, Utc};
use everturn_proto::{
    turn::{
        CallRule, ResolveApproval, SaveApproval, SaveResult, SaveThought, SavedApproval, ToolCall,
        save_request::Batch,
    },
    words::{
        AnswersFrom, ApprovalBy, ApprovalRefusal, ApprovalState, AuditAction, AuditActorKind,
        AuditOutcome, Effect,
    },
};
use everturn_store::{
    AuditQuery, AuditTrail, Backlogs, Conversations, DefinedTool, EventWriter, MessageQueue,
    NewAnswer, NewConversation, NewMessage, NotedAnswer, OutsideTools, StepClaims, StoreError,
    ToolClaim, ToolClaims, TurnInputs,
};

use super::{
    Backend,
    conversations::new_conversation,
    fixture::{Turn, TurnStore, new_message, state, tenant},
};

/// Begins a turn of a message of `ann`, whose first step asked for one tool, for whose approval this rule holds.
pub(super) async fn asking<B: Backend>(backend: &B, rule: CallRule) -> Turn<B::Store> {
    asking_in(backend, rule, new_conversation("c", "default")).await
}

/// Like [`asking`], in the given conversation `c`.
pub(super) async fn asking_in<B: Backend>(
    backend: &B,
    rule: CallRule,
    conversation: NewConversation,
) -> Turn<B::Store> {
    let store = backend.open().await;
    store.create_conversation(conversation).await.unwrap();
    let sent = NewMessage {
        sent_by: Some("ann".into()),
        ..new_message("c", "m", None)
    };
    store.queue_message(&tenant(), sent).await.unwrap();
    let turn = Turn::begun(store, "c", "m").await;
    let call = ToolCall {
        approval_timeout_s: Some(60),
        definition_hash: "d1".into(),
        rule: Some(rule),
        ..turn.call(0, 0, Effect::Once)
    };
    turn.store
        .complete_step(&turn.step(0), state("look", vec![call]))
        .await
        .unwrap();
    turn.store
        .save(&turn.request(0, Batch::Thought(SaveThought {})))
        .await
        .unwrap();
    turn
}

pub(super) fn rule(by: &ApprovalBy, answers_from: &AnswersFrom) -> CallRule {
    CallRule {
        by: by.into(),
        answers_from: answers_from.into(),
        ..CallRule::default()
    }
}

pub async fn calls_that_wait_are_counted_by_agent(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    let later = Utc::now() + TimeDelta::seconds(10);
    let [waiting] = turn
        .store
        .backlog(later)
        .await
        .unwrap()
        .approvals
        .try_into()
        .unwrap();
    assert_eq!((waiting.agent.as_str(), waiting.calls), ("default", 1));
    assert!(waiting.oldest <= later);
    note(&turn.store, &turn.execution_id(0, 0), "deny_1", "boss").await;
    assert_eq!(save(&turn, "deny_1", ApprovalState::Denied).await, None);
    assert_eq!(turn.store.backlog(later).await.unwrap().approvals, []);
}

/// Readers of the event and of the list count down to one moment.
pub async fn the_end_of_a_wait_is_one_time(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    let id = turn.execution_id(0, 0);
    let tool = turn.store.outside_tool(&tenant(), "c", &id).await.unwrap();
    let listed = tool.unwrap().expires_at.unwrap();
    let told = turn.data("approval_requested").await["expires_at"].clone();
    assert_eq!(told, listed.to_rfc3339_opts(SecondsFormat::Millis, true));
}

/// Notes an answer as a gateway does. An id that begins with `deny` is the id of a denial.
pub(super) async fn note<S: OutsideTools>(
    store: &S,
    call: &str,
    id: &str,
    by: &str,
) -> NotedAnswer {
    let decision = if id.starts_with("deny") {
        "deny"
    } else {
        "approve"
    };
    let given = ResolveApproval {
        execution_id: call.into(),
        decision: decision.into(),
        reason: Some(format!("because of {id}")),
        input_hash: Some("shown".into()),
        ..ResolveApproval::default()
    };
    note_given(store, &given, id, by).await
}

/// Notes an answer as a gateway does. A name that begins with `key_` is the id of a key without an owner.
pub(super) async fn note_given<S: OutsideTools>(
    store: &S,
    given: &ResolveApproval,
    id: &str,
    by: &str,
) -> NotedAnswer {
    let answer = NewAnswer {
        id,
        answered_by: Some(by).filter(|by| !by.is_empty()),
        is_person: !by.starts_with("key_"),
        answer: given,
    };
    store
        .note_answer(&tenant(), "c", &given.execution_id, answer, None)
        .await
        .unwrap()
}

/// Saves an answer as a turn does, and returns why it was refused.
pub(super) async fn save<S: TurnStore>(
    turn: &Turn<S>,
    id: &str,
    decision: ApprovalState,
) -> Option<ApprovalRefusal> {
    let saved = save_answer(turn, id, decision).await;
    saved.approval_refused.map(ApprovalRefusal::from)
}

/// Saves an answer as a turn does.
async fn save_answer<S: TurnStore>(
    turn: &Turn<S>,
    id: &str,
    decision: ApprovalState,
) -> SaveResult {
    let answer = SaveApproval {
        execution_id: turn.execution_id(0, 0),
        decision: decision.into(),
        resolved_by: Some("the boss".into()),
        answer_id: Some(id.into()),
        remember: true,
        input_hash: "shown".into(),
        ..SaveApproval::default()
    };
    turn.save(0, Batch::Approval(answer)).await.result
}

/// Returns who answered, and through what.
pub(super) async fn answered<S: TurnStore>(turn: &Turn<S>) -> Option<(String, Option<String>)> {
    let events = turn.all_data("approval_resolved").await;
    let resolved = events.last()?;
    let text = |field: &str| resolved[field].as_str().map(str::to_owned);
    Some((text("resolved_by").unwrap(), text("resolved_through")))
}

pub async fn who_answered_is_what_a_gateway_has_noted(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    let call = turn.execution_id(0, 0);
    assert_eq!(
        note(&turn.store, &call, "a", "bob").await,
        NotedAnswer::Noted
    );
    let again = note(&turn.store, &call, "a", "eve").await;
    assert_eq!(again, NotedAnswer::Noted, "it is still bob's");
    assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    assert_eq!(answered(&turn).await, Some(("bob".into(), None)));
}

pub async fn an_answer_that_no_gateway_has_noted_is_an_operators(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    assert_eq!(save(&turn, "a", ApprovalState::Denied).await, None);
    let operator = ("operator".into(), Some("engine".into()));
    assert_eq!(answered(&turn).await, Some(operator));
}

pub async fn an_answer_through_the_engine_has_one_audit_entry(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    for _ in 0..2 {
        assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    }
    let entries = turn.store.audit_entries(&AuditQuery::default()).await;
    let entries = entries.unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!(entry.tenant_id.as_deref(), Some("default"));
    assert_eq!(entry.actor_kind, AuditActorKind::Operator);
    assert_eq!(entry.action, AuditAction::ApprovalAnswered);
    assert_eq!(entry.outcome, AuditOutcome::Done);
    assert_eq!(entry.target_id, turn.execution_id(0, 0));
    let expected = serde_json::json!({
        "conversation_id": "c", "decision": "approved", "has_other_input": false, "remember": true, "through": "engine",
    });
    assert_eq!(serde_json::Value::Object(entry.details.0.clone()), expected);
}

pub async fn the_save_of_an_answer_through_a_gateway_writes_no_entry(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    note(&turn.store, &turn.execution_id(0, 0), "a", "bob").await;
    assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    let entries = turn.store.audit_entries(&AuditQuery::default()).await;
    assert_eq!(entries.unwrap(), []);
}

pub async fn only_gateways_answer_when_it_is_so_configured(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Gateway)).await;
    for decision in [ApprovalState::Approved, ApprovalState::Denied] {
        let refused = save(&turn, "a", decision).await;
        assert_eq!(refused, Some(ApprovalRefusal::NotThroughGateway));
    }
    assert_eq!(answered(&turn).await, None);
    let claimed = turn.store.claim_tool(&turn.tool(0, 0), "w").await;
    assert!(
        matches!(claimed, Err(StoreError::Conflict(_))),
        "{claimed:?}"
    );
    note(&turn.store, &turn.execution_id(0, 0), "a", "").await;
    assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    assert_eq!(answered(&turn).await, Some((String::new(), None)));
}

pub async fn whoever_asked_may_not_approve(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Other, &AnswersFrom::Engine)).await;
    let call = turn.execution_id(0, 0);
    for nobody in ["ann", ""] {
        let noted = note(&turn.store, &call, "a", nobody).await;
        assert_eq!(noted, NotedAnswer::NeedsOther);
    }
    let refused = save(&turn, "a", ApprovalState::Approved).await;
    assert_eq!(refused, Some(ApprovalRefusal::NeedsOther));
    // Somebody joins the turn after they have answered.
    assert_eq!(
        note(&turn.store, &call, "b", "bob").await,
        NotedAnswer::Noted
    );
    let steer = NewMessage {
        sent_by: Some("bob".into()),
        ..new_message("c", "steer", None)
    };
    turn.store.queue_message(&tenant(), steer).await.unwrap();
    turn.take("steer").await;
    let refused = save(&turn, "b", ApprovalState::Approved).await;
    assert_eq!(refused, Some(ApprovalRefusal::NeedsOther));
    assert_eq!(answered(&turn).await, None);
    assert_eq!(
        note(&turn.store, &call, "c", "eve").await,
        NotedAnswer::Noted
    );
    assert_eq!(save(&turn, "c", ApprovalState::Approved).await, None);
    assert_eq!(answered(&turn).await, Some(("eve".into(), None)));
}

pub async fn whoever_asked_may_deny(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Other, &AnswersFrom::Engine)).await;
    let call = turn.execution_id(0, 0);
    let noted = note(&turn.store, &call, "deny", "ann").await;
    assert_eq!(noted, NotedAnswer::Noted);
    assert_eq!(save(&turn, "deny", ApprovalState::Denied).await, None);
    assert_eq!(answered(&turn).await, Some(("ann".into(), None)));
}

/// The engine brings the first of several words when a worker comes back.
pub async fn the_newest_word_of_a_person_is_saved(backend: &impl Backend) {
    for (noted, brought, newest) in [
        (vec!["a", "deny"], "a", "deny"),
        (vec!["deny", "a"], "deny", "a"),
        // A person repeats the first word after the second.
        (vec!["a", "deny", "a"], "deny", "a"),
        (vec!["deny", "a", "deny"], "a", "deny"),
        (vec!["a", "b"], "a", "b"),
    ] {
        let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Gateway)).await;
        let call = turn.execution_id(0, 0);
        for id in &noted {
            note(&turn.store, &call, id, &format!("person of {id}")).await;
        }
        let decision = |id: &str| {
            if id.starts_with("deny") {
                ApprovalState::Denied
            } else {
                ApprovalState::Approved
            }
        };
        let stored = SavedApproval {
            decision: decision(newest).into(),
            answer_id: Some(newest.into()),
        };
        let saved = save_answer(&turn, brought, decision(brought)).await;
        assert_eq!(saved.approval_refused, None);
        assert_eq!(saved.approval_saved, Some(stored.clone()), "{noted:?}");
        let by = format!("person of {newest}");
        assert_eq!(answered(&turn).await, Some((by, None)));
        let resolved = turn.data("approval_resolved").await;
        assert_eq!(resolved["decision"], stored.decision);
        assert_eq!(resolved["reason"], format!("because of {newest}"));
        // Neither a replay nor a later word changes the answer.
        note(&turn.store, &call, "deny_late", "eve").await;
        for again in [brought, "deny_late"] {
            let repeated = save_answer(&turn, again, decision(again)).await;
            assert_eq!(repeated.approval_saved, Some(stored.clone()));
        }
        let claim = turn.store.claim_tool(&turn.tool(0, 0), "w").await.unwrap();
        let runs = matches!(claim, ToolClaim::Run { .. });
        assert_eq!(runs, newest != "deny", "{noted:?}");
        let deleted = turn.store.delete_conversation(&tenant(), "c", None).await;
        assert!(deleted.unwrap());
    }
}

pub async fn a_word_without_the_right_does_not_count(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Other, &AnswersFrom::Engine)).await;
    let call = turn.execution_id(0, 0);
    note(&turn.store, &call, "deny", "ann").await;
    note(&turn.store, &call, "a", "bob").await;
    // Bob joins the turn after he has approved, and may approve no more.
    let steer = NewMessage {
        sent_by: Some("bob".into()),
        ..new_message("c", "steer", None)
    };
    turn.store.queue_message(&tenant(), steer).await.unwrap();
    turn.take("steer").await;
    assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    assert_eq!(answered(&turn).await, Some(("ann".into(), None)));
    assert_eq!(turn.data("approval_resolved").await["decision"], "denied");
}

pub async fn an_answer_through_the_engine_is_saved_beside_noted_words(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    note(&turn.store, &turn.execution_id(0, 0), "deny", "ann").await;
    for _ in 0..2 {
        let saved = save_answer(&turn, "by hand", ApprovalState::Approved).await;
        assert_eq!(saved.approval_saved.unwrap().decision, "approved");
    }
    let operator = ("operator".into(), Some("engine".into()));
    assert_eq!(answered(&turn).await, Some(operator));
}

pub async fn the_answers_to_a_call_are_bounded(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    let call = turn.execution_id(0, 0);
    for number in 0..32 {
        let noted = note(&turn.store, &call, &number.to_string(), "bob").await;
        assert_eq!(noted, NotedAnswer::Noted);
    }
    let one_more = note(&turn.store, &call, "more", "bob").await;
    assert_eq!(one_more, NotedAnswer::TooMany);
    assert_eq!(
        note(&turn.store, &call, "31", "bob").await,
        NotedAnswer::Noted
    );
    let unknown = note(&turn.store, "exec_unknown", "a", "bob").await;
    assert_eq!(unknown, NotedAnswer::TooMany);
}

pub async fn an_approval_may_be_remembered(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    let names = ["search".to_owned(), "other".to_owned()];
    let granted = async |conversation: &'static str| {
        let granted = turn.store.granted_tools(conversation, &names).await;
        granted.unwrap()
    };
    assert_eq!(granted("c").await, []);
    assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    let search = DefinedTool {
        tool_name: "search".into(),
        definition_hash: "d1".into(),
    };
    assert_eq!(granted("c").await, [search]);
    assert_eq!(granted("d").await, [], "in this conversation only");
}

pub async fn a_conversation_knows_with_which_definitions_it_has_used_tools(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Anyone, &AnswersFrom::Engine)).await;
    let names = ["search".to_owned()];
    let used = async || {
        let used = turn.store.used_definitions("c", &names).await.unwrap();
        used.into_iter()
            .map(|tool| tool.definition_hash)
            .collect::<Vec<_>>()
    };
    assert_eq!(used().await, [""; 0], "nobody has approved it");
    assert_eq!(save(&turn, "a", ApprovalState::Approved).await, None);
    assert_eq!(used().await, ["d1"]);
    let claimed = turn.store.claim_tool(&turn.tool(0, 0), "w").await;
    let Ok(ToolClaim::Run { record, .. }) = claimed else {
        panic!("{claimed:?}");
    };
    assert_eq!(record.call.definition_hash, "d1");
}
