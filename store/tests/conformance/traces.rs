//! The traces of turns.

use everturn_store::{Conversations, TraceContext, TraceContexts, TraceKey};

use super::{
    Backend,
    fixture::{Turn, tenant},
};

fn context(span: &str) -> TraceContext {
    TraceContext {
        trace_parent: format!("00-0af7651916cd43dd8448eb211c80319c-{span}-01"),
        trace_state: "vendor=1".to_owned(),
    }
}

pub async fn the_first_trace_that_is_offered_is_kept(backend: &impl Backend) {
    let (gateway, worker) = (backend.open().await, backend.open().await);
    Turn::begun(gateway.clone(), "c", "m").await;
    let (of, first) = (TraceKey::of("c", "run_1"), context("00f067aa0ba902b7"));
    assert_eq!(worker.trace_of(&of).await.unwrap(), None);
    gateway.offer_trace(&of, &first).await.unwrap();
    let second = context("b7ad6b7169203331");
    gateway.offer_trace(&of, &second).await.unwrap();
    let offered = worker.trace_of(&of).await.unwrap().unwrap();
    assert_eq!((&offered.context, &offered.agent), (&first, &None));
    let begun = worker.begin_trace(&of, &second, "coder").await.unwrap();
    assert_eq!(begun.context, first);
    assert!(begun.begun_at.is_some());
    let again = gateway.begin_trace(&of, &second, "other").await.unwrap();
    assert_eq!(again, begun);
    assert_eq!(gateway.trace_of(&of).await.unwrap(), Some(begun));
}

pub async fn a_trace_that_nobody_offered_begins_with_the_turn(backend: &impl Backend) {
    let store = backend.open().await;
    let (of, own) = (TraceKey::of("c", "run_1"), context("00f067aa0ba902b7"));
    let begun = store.begin_trace(&of, &own, "coder").await.unwrap();
    assert_eq!(
        (&begun.context, begun.agent.as_deref()),
        (&own, Some("coder"))
    );
    assert_eq!(store.trace_of(&of).await.unwrap(), Some(begun));
    assert_eq!(
        store.trace_of(&TraceKey::of("d", "run_1")).await.unwrap(),
        None
    );
}

pub async fn a_trace_goes_with_its_conversation(backend: &impl Backend) {
    let store = backend.open().await;
    Turn::begun(store.clone(), "c", "m").await;
    let (of, first) = (TraceKey::of("c", "run_1"), context("00f067aa0ba902b7"));
    store.offer_trace(&of, &first).await.unwrap();
    assert!(
        store
            .delete_conversation(&tenant(), "c", None)
            .await
            .unwrap()
    );
    assert_eq!(store.trace_of(&of).await.unwrap(), None);
    store.offer_trace(&of, &first).await.unwrap();
    assert_eq!(
        store.trace_of(&of).await.unwrap(),
        None,
        "of no conversation"
    );
}
