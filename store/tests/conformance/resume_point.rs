//! The point from which a conversation goes on when its workflow is gone.

use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    Access, Conversations, ModelCalls, NewConversation, ResumePoint, StepClaims, UnfinishedTurn,
};

use super::{
    Backend,
    fixture::{Turn, state, tenant},
};

/// Creates a conversation of owner `ann`. Returns the turn of its message `m1`, which has not begun.
async fn anns<B: Backend>(backend: &B) -> Turn<B::Store> {
    let store = backend.open().await;
    let new = NewConversation {
        name: "c".into(),
        access: Access::owner("default", "ann"),
        agent: "default".into(),
        title: None,
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    store.create_conversation(new).await.unwrap();
    Turn::new(store, "c", "m1")
}

async fn point(store: &impl Conversations) -> ResumePoint {
    let point = store.resume_point(&tenant(), "c", 10).await;
    point.unwrap().unwrap()
}

fn unfinished(checkpoint_step: Option<u32>) -> UnfinishedTurn {
    UnfinishedTurn {
        message_id: "m1".into(),
        checkpoint_step,
    }
}

pub async fn the_resume_point_names_what_waits(backend: &impl Backend) {
    let turn = anns(backend).await;
    let nothing = ResumePoint {
        turn: None,
        waiting: vec![],
        has_begun: false,
    };
    assert_eq!(point(&turn.store).await, nothing);
    for message in ["m1", "m2", "m3"] {
        let queued = turn.queue(message).await;
        assert_eq!(queued.has_others, message != "m1");
        let again = turn.queue(message).await;
        assert_eq!(
            again.has_others,
            message != "m1",
            "also when it is sent again"
        );
        // The messages are ordered by their times, which are stored to the millisecond.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert_eq!(point(&turn.store).await.waiting, ["m1", "m2", "m3"]);
    let first = turn.store.resume_point(&tenant(), "c", 2).await.unwrap();
    assert_eq!(first.unwrap().waiting, ["m1", "m2"]);

    turn.begin_again().await;
    let running = turn.queue("m2").await;
    assert!(running.has_others);
    let mut expected = ResumePoint {
        turn: Some(unfinished(None)),
        waiting: vec!["m2".to_owned(), "m3".to_owned()],
        has_begun: true,
    };
    assert_eq!(point(&turn.store).await, expected);
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    expected.turn = None;
    assert_eq!(point(&turn.store).await, expected);
}

pub async fn the_resume_point_is_at_the_last_checkpoint(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    let store = &turn.store;
    assert_eq!(point(store).await.turn, Some(unfinished(None)));
    for step in 0..2 {
        turn.asks(step, "look", &[Effect::Read]).await;
        assert_eq!(point(store).await.turn, Some(unfinished(Some(step))));
        turn.runs(step, 0).await;
        store.claim_step(&turn.step(step + 1), None).await.unwrap();
    }
    store
        .save_partial(&turn.step(2), state("so f", vec![]))
        .await
        .unwrap();
    assert_eq!(
        point(store).await.turn,
        Some(unfinished(Some(1))),
        "a text so far is no checkpoint"
    );
    turn.complete(2, "answer", &[]).await;
    assert_eq!(
        point(store).await.turn,
        Some(unfinished(Some(2))),
        "answered, and its end not saved"
    );
    turn.end(2, AgentExecutionStatus::Completed).await;
    assert_eq!(point(store).await.turn, None);
}

pub async fn the_resume_point_is_for_those_who_see_the_conversation(backend: &impl Backend) {
    let store = backend.open().await;
    assert_eq!(store.resume_point(&tenant(), "c", 10).await.unwrap(), None);
    let turn = anns(backend).await;
    turn.queue("m1").await;
    turn.begin_again().await;
    let store = &turn.store;
    let ann = Access::owner("default", "ann");
    assert!(store.resume_point(&ann, "c", 1).await.unwrap().is_some());
    for stranger in [Access::tenant("another"), Access::owner("default", "bob")] {
        let point = store.resume_point(&stranger, "c", 10).await.unwrap();
        assert_eq!(point, None, "{stranger:?}");
    }
}
