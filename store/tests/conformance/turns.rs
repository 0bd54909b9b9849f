//! The begin of a turn and the model's context.

use everturn_proto::{turn::AgentDefinition, words::AgentExecutionStatus};
use everturn_store::{
    Conversations, EventReader, Missing, StoreError, TurnInputs, TurnStart, Turns,
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
        ("default", "default")
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
    // The reconciler asks, which never takes a turn over.
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
            .conversation_head(&tenant(), "c")
            .await
            .unwrap()
            .unwrap()
            .is_running
    );
}
