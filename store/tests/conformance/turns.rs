//! The begin of a turn and the model's context.

use everturn_proto::{
    Thread,
    turn::AgentDefinition,
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    ContextMessage, Conversations, EventReader, Missing, PageLimit, StoreError, TurnStart,
    TurnStore,
};

use super::{
    Backend,
    fixture::{Turn, agent, data, tenant},
};

pub async fn a_turn_creates_its_conversation(backend: &impl Backend) {
    let turn = Turn::new(backend.open().await, "c", "m");
    let long = format!("  Hello\n there {}", "ä".repeat(100));
    let begun = turn.begin_as_run(&long).await.unwrap();
    assert_eq!(
        (begun.status.clone(), begun.last_sequence),
        (AgentExecutionStatus::Running, 1)
    );
    assert_eq!(begun.agent.unwrap().definition, agent());

    let conversation = turn.conversation().await;
    assert_eq!(
        (conversation.tenant_id.as_str(), conversation.agent.as_str()),
        ("tenant", "default")
    );
    assert_eq!(
        (conversation.message_count, conversation.last_sequence),
        (1, 1)
    );
    let title = conversation.title.unwrap();
    assert!(title.starts_with("Hello there ä"), "{}", title);
    assert_eq!(title.chars().count(), 80);

    let events = turn.events().await;
    assert_eq!(data(&events[0])["content"], long);
    assert_eq!(data(&events[0])["message_id"], "m");
    assert_eq!(
        (events[0].message_id.as_str(), events[0].event_type.as_str()),
        ("m", "user_message")
    );
    assert!(
        events[0].created_at.ends_with('Z') && events[0].created_at.len() == 24,
        "{}",
        events[0].created_at
    );
}

pub async fn a_turn_begins_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let rows = backend.row_count().await;
    let again = turn.begin_as_run("another text").await.unwrap();
    assert_eq!(
        (again.status.clone(), again.last_sequence),
        (AgentExecutionStatus::Running, 1)
    );
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    let after = turn.begin_again().await;
    assert_eq!(
        (after.status.clone(), after.last_sequence),
        (AgentExecutionStatus::Cancelled, 2)
    );
    assert_eq!(
        backend.row_count().await,
        rows + 1,
        "only the event of the end"
    );
    assert_eq!(turn.conversation().await.message_count, 1);
}

pub async fn a_turn_without_content_or_row_is_refused(backend: &impl Backend) {
    let turn = Turn::new(backend.open().await, "c", "m");
    let refused = turn.begin_as_run("").await;
    assert!(
        matches!(
            refused,
            Err(StoreError::NotFound {
                what: Missing::Message,
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(
        turn.store.conversation(&tenant(), "c").await.unwrap(),
        None,
        "nothing is left behind"
    );
}

pub async fn the_agent_stays_pinned(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let mut repeated = turn.begin("");
    repeated.agent = AgentDefinition {
        model: Some("m2".into()),
        ..agent()
    };
    // A run of an earlier release, which does not ask again.
    repeated.epoch = None;
    let TurnStart::Begun(begun) = turn.store.begin_turn(repeated).await.unwrap() else {
        panic!("it cannot ask again")
    };
    let pinned = begun.agent.unwrap();
    assert_eq!(pinned.definition, agent());
    assert_eq!(
        turn.store.agent_definition(&pinned.hash).await.unwrap(),
        Some(agent())
    );
    assert_eq!(turn.store.agent_definition("unknown").await.unwrap(), None);
}

async fn contents(store: &impl TurnStore, limit: u32) -> Vec<String> {
    let context = store
        .context("c", &Thread::Conversation, PageLimit::rows(limit))
        .await
        .unwrap();
    context
        .into_iter()
        .map(|message: ContextMessage| format!("{} {}", message.role, message.content))
        .collect()
}

pub async fn queued_messages_wait_their_turn_in_the_context(backend: &impl Backend) {
    let first = Turn::begun(backend.open().await, "c", "m1").await;
    // The message is accepted while the first turn runs, so it is created before the first answer.
    first.queue("m2").await;
    first.complete(0, "answer 1", &[]).await;
    assert_eq!(contents(&first.store, 10).await, ["user say m1"]);
    first.end(0, AgentExecutionStatus::Completed).await;
    let second = Turn::new(first.store.clone(), "c", "m2");
    // The stored text wins over another one.
    second.begin_as_run("not this").await.unwrap();
    assert_eq!(
        contents(&first.store, 10).await,
        ["user say m1", "assistant answer 1", "user say m2"]
    );
    assert_eq!(second.events().await.len(), 4);
}

pub async fn the_context_is_cut_before_a_user_message(backend: &impl Backend) {
    let first = Turn::begun(backend.open().await, "c", "m1").await;
    for step in 0..2 {
        first
            .asks(step, &format!("look {step}"), &[Effect::Read])
            .await;
        first.runs(step, 0).await;
    }
    first.complete(2, "answer", &[]).await;
    first.end(2, AgentExecutionStatus::Completed).await;
    Turn::begun(first.store.clone(), "c", "m2").await;
    let all = [
        "user say m1",
        "assistant look 0",
        "assistant look 1",
        "assistant answer",
        "user say m2",
    ];
    assert_eq!(contents(&first.store, 5).await, all);
    for limit in 1..5 {
        assert_eq!(
            contents(&first.store, limit).await,
            ["user say m2"],
            "limit {limit}"
        );
    }
    let second = Turn::new(first.store.clone(), "c", "m2");
    for step in 0..3 {
        second
            .asks(step, &format!("seek {step}"), &[Effect::Read])
            .await;
        second.runs(step, 0).await;
    }
    // A turn that is longer than the limit has no place to cut at.
    assert_eq!(
        contents(&first.store, 2).await,
        ["assistant seek 1", "assistant seek 2"]
    );
    let context = first
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(1))
        .await
        .unwrap();
    assert_eq!(context[0].tool_calls, [second.call(2, 0, Effect::Read)]);
    assert_eq!(context[0].tool_results[0].result.as_str(), "\"found\"");
    assert_eq!(
        first
            .store
            .context("unknown", &Thread::Conversation, PageLimit::rows(10))
            .await
            .unwrap(),
        []
    );
}

pub async fn the_context_ends_at_its_bytes(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let long = "x".repeat(1000);
    for number in 0..4 {
        turn.steer(&format!("s{number}"), &format!("{number}{long}"))
            .await;
    }
    for (bytes, expected) in [
        (1_000_000, vec!["sa", "0x", "1x", "2x", "3x"]),
        (2_500, vec!["2x", "3x"]),
        (1, vec!["3x"]),
    ] {
        let limit = PageLimit { rows: 100, bytes };
        let context = turn.store.context("c", &Thread::Conversation, limit).await;
        let texts: Vec<_> = context
            .unwrap()
            .into_iter()
            .map(|message| message.content.chars().take(2).collect::<String>())
            .collect();
        assert_eq!(texts, expected, "{bytes}");
    }
}

pub async fn a_message_that_steered_an_answered_turn_has_no_turn_of_its_own(
    backend: &impl Backend,
) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.steer("s", "and this").await;
    let own = Turn::new(turn.store.clone(), "c", "s");
    for status in [
        AgentExecutionStatus::Running,
        AgentExecutionStatus::Completed,
    ] {
        assert_eq!(turn.begin_again().await.status, status);
        let begun = own.begin_as_run("and this").await.unwrap();
        assert_eq!(
            begun.status,
            AgentExecutionStatus::Completed,
            "it is answered in the turn it joined"
        );
        if status == AgentExecutionStatus::Running {
            turn.complete(0, "answer", &[]).await;
            turn.end(0, AgentExecutionStatus::Completed).await;
        }
    }
    assert_eq!(turn.events().await.len(), 4);
}

pub async fn a_message_that_steered_a_cancelled_turn_gets_its_own(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.steer("s", "and this").await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    let own = Turn::new(turn.store.clone(), "c", "s");
    assert_eq!(
        own.begin_again().await.status,
        AgentExecutionStatus::Running,
        "it was accepted and never answered"
    );
    assert_eq!(
        own.begin_again().await.status,
        AgentExecutionStatus::Running
    );
    own.complete(0, "answer", &[]).await;
    own.end(0, AgentExecutionStatus::Completed).await;
    let expected = [
        "user_message",
        "user_message",
        "cancelled",
        "assistant_message",
        "complete",
    ];
    assert_eq!(own.types().await, expected);
    assert!(
        !own.store
            .conversation_status(&tenant(), "c")
            .await
            .unwrap()
            .unwrap()
            .is_running
    );
}
