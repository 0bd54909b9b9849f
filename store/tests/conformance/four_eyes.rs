//! Four eyes: calls that another person than the one who asks must approve, and the inbox where people find calls.

use everturn_proto::{
    turn::{ResolveApproval, ToolCall},
    words::{AnswersFrom, ApprovalBy, ApprovalRefusal, ApprovalState, Effect},
};
use everturn_store::{
    Access, Conversations, InboxCall, InboxCursor, MessageQueue, NewConversation, NotedAnswer,
    OutsideTools, PageLimit, StepClaims, TurnInputs,
};

use super::{
    Backend,
    approvals::{asking, asking_in, note, note_given, rule, save},
    conversations::new_conversation,
    fixture::{Turn, TurnStore, json, new_message, state, tenant},
};

/// Notes the approval of another input.
async fn note_edit<S: TurnStore + OutsideTools>(
    turn: &Turn<S>,
    id: &str,
    by: &str,
    input: &str,
) -> NotedAnswer {
    let given = ResolveApproval {
        execution_id: turn.execution_id(0, 0),
        decision: "approve".into(),
        tool_input: Some(json(input)),
        input_hash: Some("shown".into()),
        ..ResolveApproval::default()
    };
    note_given(&turn.store, &given, id, by).await
}

/// Four eyes: with another input, the first person decides what runs, so a second person must approve the input.
pub async fn another_input_needs_two_other_people(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Other, &AnswersFrom::Engine)).await;
    for (id, by) in [("a", "ann"), ("b", "key_1"), ("c", "")] {
        let noted = note_edit(&turn, id, by, r#"{"q":"y"}"#).await;
        assert_eq!(noted, NotedAnswer::NeedsOther, "{by}");
    }
    let noted = note_edit(&turn, "d", "bob", r#"{"q":"y"}"#).await;
    assert_eq!(noted, NotedAnswer::NeedsSecond);
    let again = note_edit(&turn, "d", "bob", r#"{"q":"y"}"#).await;
    assert_eq!(again, NotedAnswer::NeedsSecond, "bob is one person");
    let other = note_edit(&turn, "e", "eve", r#"{"q":"z"}"#).await;
    assert_eq!(
        other,
        NotedAnswer::NeedsSecond,
        "eve approves another input"
    );
    let refused = save(&turn, "d", ApprovalState::Approved).await;
    assert_eq!(refused, Some(ApprovalRefusal::NeedsOther));

    let call = [("c".to_owned(), turn.execution_id(0, 0))];
    let proposals = turn.store.proposals(&call).await.unwrap();
    let proposed: Vec<_> = proposals
        .iter()
        .map(|it| (it.proposed_by.as_str(), it.input.as_str()))
        .collect();
    assert_eq!(proposed, [("eve", r#"{"q":"z"}"#), ("bob", r#"{"q":"y"}"#)]);

    let second = note_edit(&turn, "f", "eve", r#"{"q":"y"}"#).await;
    assert_eq!(second, NotedAnswer::Noted);
    assert_eq!(save(&turn, "f", ApprovalState::Approved).await, None);
    let resolved = turn.data("approval_resolved").await;
    assert_eq!(
        (
            &resolved["resolved_by"],
            &resolved["edited_by"],
            &resolved["input_text"]
        ),
        (&"eve".into(), &"bob".into(), &r#"{"q":"y"}"#.into())
    );
    assert_eq!(
        resolved["remember"], false,
        "each call needs its own other person"
    );
    let names = ["search".to_owned()];
    assert_eq!(turn.store.granted_tools("c", &names).await.unwrap(), []);
}

/// The last word of a person counts, also of a person who has proposed another input.
pub async fn a_withdrawn_proposal_has_no_second(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Other, &AnswersFrom::Engine)).await;
    let call = turn.execution_id(0, 0);
    note_edit(&turn, "a", "bob", r#"{"q":"y"}"#).await;
    note(&turn.store, &call, "deny_1", "bob").await;
    let noted = note_edit(&turn, "b", "eve", r#"{"q":"y"}"#).await;
    assert_eq!(noted, NotedAnswer::NeedsSecond);
    // The shown input, in another notation, is no other input.
    let noted = note_edit(&turn, "c", "kim", r#"{ "q" : "\u0078" }"#).await;
    assert_eq!(noted, NotedAnswer::Noted);
    assert_eq!(save(&turn, "c", ApprovalState::Approved).await, None);
    let resolved = turn.data("approval_resolved").await;
    assert_eq!(
        (&resolved["resolved_by"], &resolved["edited"]),
        (&"kim".into(), &false.into())
    );
}

pub async fn the_owner_of_the_conversation_and_keys_are_no_other_person(backend: &impl Backend) {
    let owned = NewConversation {
        access: Access::owner("default", "owen"),
        ..new_conversation("c", "default")
    };
    let rule = rule(&ApprovalBy::Other, &AnswersFrom::Engine);
    let turn = asking_in(backend, rule, owned).await;
    let call = turn.execution_id(0, 0);
    let by_owner = note(&turn.store, &call, "b", "owen").await;
    assert_eq!(by_owner, NotedAnswer::NeedsOther);
    let by_key = note(&turn.store, &call, "a", "key_1").await;
    assert_eq!(by_key, NotedAnswer::NeedsOther);
    let denied = note(&turn.store, &call, "deny_1", "key_1").await;
    assert_eq!(denied, NotedAnswer::Noted, "everybody may deny");
}

/// Every call that waits, by the nearest deadline; of other owners, only the calls that need another person.
pub async fn the_inbox_has_the_calls_that_wait_for_a_person(backend: &impl Backend) {
    let turn = asking(backend, rule(&ApprovalBy::Other, &AnswersFrom::Engine)).await;
    let store = &turn.store;
    let inbox = async |access: &Access, after: Option<&InboxCursor>, rows: u32| {
        let page = store.approval_inbox(access, after, PageLimit::rows(rows));
        let (calls, has_more) = page.await.unwrap();
        let names = calls.iter().map(|call| call.conversation_name().to_owned());
        (
            names.collect::<Vec<_>>(),
            has_more,
            calls.last().map(InboxCall::cursor),
        )
    };
    for (number, (conversation, owner, by, seconds)) in [
        ("late", "ann", ApprovalBy::Other, 90),
        ("soon", "ann", ApprovalBy::Anyone, 30),
        ("bobs", "bob", ApprovalBy::Anyone, 40),
    ]
    .into_iter()
    .enumerate()
    {
        let new = NewConversation {
            access: Access::owner("default", owner),
            ..new_conversation(conversation, "default")
        };
        store.create_conversation(new).await.unwrap();
        let message = format!("m{number}");
        let sent = new_message(conversation, &message, None);
        store.queue_message(&tenant(), sent).await.unwrap();
        let other = Turn::begun(store.clone(), conversation, &message).await;
        let call = ToolCall {
            approval_timeout_s: Some(seconds),
            rule: Some(rule(&by, &AnswersFrom::Engine)),
            ..other.call(0, 0, Effect::Once)
        };
        store
            .complete_step(&other.step(0), state("look", vec![call]))
            .await
            .unwrap();
        other.thought(0).await;
    }
    let all = tenant();
    let (names, has_more, _) = inbox(&all, None, 10).await;
    assert_eq!(
        (names, has_more),
        (
            vec!["soon".into(), "bobs".into(), "c".into(), "late".into()],
            false
        )
    );
    let (names, has_more, cursor) = inbox(&all, None, 3).await;
    assert_eq!((names.len(), has_more), (3, true));
    let (names, has_more, _) = inbox(&all, cursor.as_ref(), 3).await;
    assert_eq!((names, has_more), (vec!["late".to_owned()], false));
    let bob = Access::owner("default", "bob");
    assert_eq!(inbox(&bob, None, 10).await.0, ["bobs", "c", "late"]);
    let nobody = Access::owner("default", "kim");
    assert_eq!(inbox(&nobody, None, 10).await.0, ["c", "late"]);
    for foreign in [Access::tenant("acme"), Access::owner("acme", "ann")] {
        assert_eq!(inbox(&foreign, None, 10).await.0, [""; 0], "another tenant");
    }
    note(store, &turn.execution_id(0, 0), "deny_1", "eve").await;
    assert_eq!(save(&turn, "deny_1", ApprovalState::Denied).await, None);
    assert_eq!(inbox(&nobody, None, 10).await.0, ["late"]);
}
