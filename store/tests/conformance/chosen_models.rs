//! The model that a message chose: the turn is pinned to the model, and a repeated message has no other.

use everturn_proto::{
    Json,
    turn::{AgentDefinition, FallbackModel},
};
use everturn_store::{
    BeginTurn, ConversationChange, Conversations, EventReader, MessageQueue, Missing, NewMessage,
    StoreError, TurnStart, Turns,
};

use super::{
    Backend,
    conversations::new_conversation,
    fixture::{Turn, TurnStore, agent, new_message, tenant},
};

fn with_models() -> AgentDefinition {
    let other = FallbackModel {
        provider: "p".into(),
        model: "other".into(),
        ..FallbackModel::default()
    };
    AgentDefinition {
        models: vec![other],
        ..agent()
    }
}

fn choosing(message: &str, model: &str) -> NewMessage {
    NewMessage {
        model: Some(model.into()),
        names_model: true,
        ..new_message("c", message, Some(message))
    }
}

/// Begins the turn, and returns the definition to which the turn is pinned.
async fn pinned<S: TurnStore + Clone>(turn: &Turn<S>) -> Result<AgentDefinition, StoreError> {
    let begin = BeginTurn {
        agent: with_models(),
        ..turn.begin("")
    };
    match turn.store.begin_turn(begin).await? {
        TurnStart::Begun(begun) => Ok(begun.agent.unwrap().definition),
        TurnStart::AskAgain { .. } => panic!("no other turn runs"),
    }
}

pub async fn a_turn_is_pinned_to_the_model_of_its_message(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap();
    store
        .queue_message(&tenant(), choosing("m", "p/other"))
        .await
        .unwrap();
    let turn = Turn::new(store.clone(), "c", "m");
    let agent = pinned(&turn).await.unwrap();
    assert_eq!(agent.own_model().as_deref(), Some("p/other"));
    let again = turn.begin_as_run("").await.unwrap().agent.unwrap();
    assert_eq!(again.definition, agent, "the turn begins once");
    let head = store.conversation_head(&tenant(), "c").await.unwrap();
    assert_eq!(head.unwrap().model.as_deref(), Some("p/other"));
    let event = turn.events().await.remove(0).event_data;
    let event: serde_json::Value = event.as_ref().map(Json::to_value).unwrap();
    assert_eq!(event["model"], "p/other");
}

pub async fn a_model_that_the_agent_has_lost_is_unknown(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap();
    store
        .queue_message(&tenant(), choosing("m", "p/lost"))
        .await
        .unwrap();
    let turn = Turn::new(store.clone(), "c", "m");
    let refused = pinned(&turn).await;
    let is_agent = |error: &StoreError| {
        matches!(
            error,
            StoreError::NotFound {
                what: Missing::Agent,
                ..
            }
        )
    };
    assert!(refused.as_ref().is_err_and(is_agent), "{refused:?}");
    let begin = BeginTurn {
        agent: with_models(),
        on_unknown_agent: everturn_store::OnUnknownAgent::Begin,
        ..turn.begin("")
    };
    let TurnStart::Begun(begun) = store.begin_turn(begin).await.unwrap() else {
        panic!("no other turn runs");
    };
    let agent = begun.agent.unwrap().definition;
    assert!(agent.is_only_a_name());
    assert_eq!(agent.unknown_model.as_deref(), Some("p/lost"));
}

pub async fn a_repeated_message_has_the_same_model(backend: &impl Backend) {
    let store = backend.open().await;
    store
        .create_conversation(new_conversation("c", "default"))
        .await
        .unwrap();
    let queue = async |new| store.queue_message(&tenant(), new).await;
    assert!(queue(choosing("m", "p/other")).await.unwrap().is_new);
    assert!(!queue(choosing("m", "p/other")).await.unwrap().is_new);
    let refused = queue(choosing("m", "p/small")).await;
    assert!(
        matches!(refused, Err(StoreError::OtherContent { .. })),
        "{refused:?}"
    );
    // A message that names no model has the model of the conversation, which may have changed.
    let unnamed = NewMessage {
        names_model: false,
        ..choosing("m", "p/small")
    };
    assert!(!queue(unnamed).await.unwrap().is_new);
}

pub async fn a_conversation_changes_its_model_alone(backend: &impl Backend) {
    let store = backend.open().await;
    let new = everturn_store::NewConversation {
        model: Some("p/other".into()),
        ..new_conversation("c", "default")
    };
    let made = store.create_conversation(new).await.unwrap().unwrap();
    assert_eq!(made.model.as_deref(), Some("p/other"));
    let change = |model: &str| ConversationChange {
        model: Some(model.into()),
        ..ConversationChange::default()
    };
    for (model, expected) in [("p/small", Some("p/small")), ("", None)] {
        let changed = store
            .change_conversation(&tenant(), "c", &change(model))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(changed.model.as_deref(), expected);
        assert_eq!(changed.title, made.title);
    }
}
