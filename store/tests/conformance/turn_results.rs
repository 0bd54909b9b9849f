//! The results of turns, and the calls over MCP: what a client gets that waits, or that comes back.

use std::collections::BTreeSet;

use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    Access, Conversations, MessageQueue, NewConversation, NewMessage, TurnResults, TurnState,
    mcp_message_id,
};

use super::{
    Backend,
    fixture::{Turn, data, new_message, tenant},
};

async fn state(store: &impl TurnResults, access: &Access, message: &str) -> Option<TurnState> {
    let found = store.turn_result(access, "c", message).await.unwrap();
    found.map(|found| found.state)
}

/// The types and the texts of the last events of a turn.
fn ends(state: &TurnState) -> Vec<(String, Option<String>)> {
    let TurnState::Ended { events, .. } = state else {
        panic!("the turn has not ended: {state:?}");
    };
    let text = |event| data(event)["content"].as_str().map(str::to_owned);
    let ends = events
        .iter()
        .map(|event| (event.event_type.clone(), text(event)));
    ends.collect()
}

pub async fn a_turn_has_its_answer_when_it_has_ended(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = Turn::begun(store.clone(), "c", "m").await;
    assert!(matches!(
        state(&store, &tenant(), "m").await,
        Some(TurnState::Running { turn_message_id, .. }) if turn_message_id == "m"
    ));
    turn.queue("later").await;
    assert_eq!(
        state(&store, &tenant(), "later").await,
        Some(TurnState::Waiting)
    );
    assert_eq!(state(&store, &tenant(), "none").await, None);

    // The turn ends with an open tool call, so the end's batch begins with another event.
    turn.asks(0, "I look.", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    turn.complete(1, "42", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let next = Turn::new(store.clone(), "c", "later");
    next.begin_as_run("").await.unwrap();
    next.complete(0, "another answer", &[]).await;
    next.end(0, AgentExecutionStatus::Completed).await;

    let ended = state(&store, &tenant(), "m").await.unwrap();
    let expected = [
        ("assistant_message".to_owned(), Some("42".to_owned())),
        ("complete".to_owned(), None),
    ];
    assert_eq!(ends(&ended), expected);
    let TurnState::Ended {
        status,
        error_code,
        events,
        ..
    } = ended
    else {
        unreachable!()
    };
    assert_eq!(
        (status, error_code),
        (AgentExecutionStatus::Completed, None)
    );
    assert_eq!(data(&events[1])["usage"]["input_tokens"], 200);
}

pub async fn a_failed_turn_has_its_code(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.asks(0, "I look.", &[Effect::Once]).await;
    turn.end(1, AgentExecutionStatus::Failed).await;
    let ended = state(&store, &tenant(), "m").await.unwrap();
    assert_eq!(
        ends(&ended),
        [("error".to_owned(), None)],
        "the text was saved before"
    );
    let TurnState::Ended {
        status,
        error_code,
        error_message,
        ..
    } = ended
    else {
        unreachable!()
    };
    assert_eq!(status, AgentExecutionStatus::Failed);
    assert_eq!(
        (error_code.as_deref(), error_message.as_deref()),
        (Some("a_code"), Some("why"))
    );
}

pub async fn a_turn_is_its_owners(backend: &impl Backend) {
    let store = backend.open().await;
    let ann = Access {
        owner_id: Some("ann".into()),
        ..tenant()
    };
    let new = NewConversation::new("c", ann.clone(), "default");
    store.create_conversation(new).await.unwrap();
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.complete(0, "42", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let bob = Access {
        owner_id: Some("bob".into()),
        ..tenant()
    };
    for (access, may_see) in [
        (ann, true),
        (tenant(), true),
        (bob, false),
        (Access::tenant("acme"), false),
    ] {
        assert_eq!(
            state(&store, &access, "m").await.is_some(),
            may_see,
            "{access:?}"
        );
    }
}

/// Queues a message of a call over MCP.
async fn call(store: &impl MessageQueue, access: &Access, conversation: &str, key: &str) {
    let message = NewMessage {
        client_message_id: Some(mcp_message_id(access, key)),
        ..new_message(
            &access.id_of(conversation),
            &format!("m-{conversation}-{key}"),
            None,
        )
    };
    store.queue_message(access, message).await.unwrap();
}

pub async fn calls_over_mcp_are_found_and_listed(backend: &impl Backend) {
    let store = backend.open().await;
    let owner = |owner: &str| Access {
        owner_id: Some(owner.into()),
        ..tenant()
    };
    let (ann, bob, acme) = (owner("ann"), owner("bob"), Access::tenant("acme"));
    for (access, name) in [(&ann, "a"), (&bob, "b"), (&acme, "c")] {
        let new = NewConversation::new(name, access.clone(), "default");
        store.create_conversation(new).await.unwrap();
    }
    for (access, name, key) in [
        (&ann, "a", "1"),
        (&bob, "b", "1"),
        (&ann, "a", "2"),
        (&acme, "c", "1"),
    ] {
        call(&store, access, name, key).await;
    }
    let queued = new_message("a", "no-call", Some("mine"));
    store.queue_message(&ann, queued).await.unwrap();
    assert_ne!(mcp_message_id(&ann, "1"), mcp_message_id(&bob, "1"));

    let found = store
        .mcp_call(&ann, &mcp_message_id(&ann, "1"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.conversation_name(), found.message_id.as_str()),
        ("a", "m-a-1")
    );
    for (access, id) in [(&bob, mcp_message_id(&ann, "1")), (&ann, "mine".to_owned())] {
        assert_eq!(store.mcp_call(access, &id).await.unwrap(), None);
    }

    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.mcp_calls(&ann, after.as_ref(), 1).await.unwrap();
        let Some(call) = page.into_iter().next() else {
            break;
        };
        after = Some(call.cursor());
        listed.push((call.created_at, call.message_id, call.is_visible));
    }
    // Calls of the same instant are in the order of their ids.
    assert!(
        listed
            .iter()
            .rev()
            .is_sorted_by_key(|(at, id, _)| (*at, id)),
        "{listed:?}"
    );
    let listed: BTreeSet<_> = listed
        .iter()
        .map(|(_, id, is_visible)| (id.as_str(), *is_visible))
        .collect();
    assert_eq!(
        listed,
        BTreeSet::from([("m-a-1", true), ("m-a-2", true), ("m-b-1", false)])
    );
}
