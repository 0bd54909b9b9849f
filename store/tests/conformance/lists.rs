//! The list of conversations: its order, its pages, and what a search finds.

use std::time::Duration;

use everturn_proto::{
    turn::{LlmCompleteState, ToolCall},
    words::{AgentExecutionStatus, Effect, WaitingFor},
};
use everturn_store::{
    Access, Conversation, Conversations, ListFilter, ListQuery, MAX_SCANNED, NewConversation,
    StepClaims,
};

use super::{
    Backend,
    fixture::{Turn, TurnStore, state, tenant},
};

async fn create(store: &impl Conversations, id: &str, title: &str, agent: &str) {
    let new = NewConversation {
        name: id.into(),
        access: tenant(),
        agent: agent.into(),
        title: Some(title.into()),
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    store.create_conversation(new).await.unwrap();
}

/// Reads all pages of a list. Returns the rows, and how many pages there were.
async fn all(
    store: &impl Conversations,
    limit: u32,
    filter: &ListFilter,
) -> (Vec<Conversation>, u32) {
    let mut query = ListQuery {
        before: None,
        limit,
        filter: filter.clone(),
    };
    let (mut rows, mut pages) = (Vec::new(), 0);
    loop {
        let page = store.list_conversations(&tenant(), &query).await.unwrap();
        assert!(page.conversations.len() <= limit as usize);
        rows.extend(page.conversations.into_iter().map(|row| row.conversation));
        pages += 1;
        assert!(pages < 20, "each page begins behind the one before");
        query.before = page.next;
        if query.before.is_none() {
            return (rows, pages);
        }
    }
}

async fn found(store: &impl Conversations, search: &str, agent: Option<&str>) -> Vec<String> {
    let filter = ListFilter::new(Some(search), agent.map(Into::into));
    let (rows, _) = all(store, 2, &filter).await;
    let mut ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids
}

pub async fn lists_are_paged_by_last_update(backend: &impl Backend) {
    let store = backend.open().await;
    // The conversations are created quickly, so that some share a millisecond and the id decides their order.
    for number in 0..10 {
        create(&store, &format!("c{number}"), "", "a").await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    Turn::begun(store.clone(), "c3", "m").await;

    let (seen, pages) = all(&store, 3, &ListFilter::default()).await;
    assert_eq!(pages, 4);
    assert_eq!(seen[0].id, "c3", "the last updated first");
    let listed: Vec<_> = seen
        .iter()
        .map(|row| (row.active_at, row.id.clone()))
        .collect();
    let mut places = listed.clone();
    assert_eq!(places.len(), 10);
    places.sort_unstable();
    places.dedup();
    places.reverse();
    assert_eq!(listed, places, "each once, in order");
    assert_eq!(
        all(&store, 10, &ListFilter::default()).await.1,
        1,
        "a last page that is full is the last"
    );
}

/// Titles are searched alike on each database, whatever it knows about scripts.
pub async fn titles_are_searched_alike(backend: &impl Backend) {
    let store = backend.open().await;
    for (id, title) in [
        ("a", "Straße nach ROM"),
        ("b", "été à Rome"),
        ("c", "МОСКВА 100%"),
        ("d", "a_b \\ 天气"),
        ("e", ""),
    ] {
        create(
            &store,
            id,
            title,
            if id == "b" { "guide" } else { "default" },
        )
        .await;
    }
    for (search, agent, expected) in [
        ("rom", None, &["a", "b"][..]),
        ("STRASSE", None, &["a"]),
        ("ÉTÉ", None, &["b"]),
        ("москва", None, &["c"]),
        ("天气", None, &["d"]),
        ("%", None, &["c"]),
        ("_", None, &["d"]),
        ("\\", None, &["d"]),
        ("'", None, &[]),
        ("rom", Some("guide"), &["b"]),
        ("", Some("guide"), &["b"]),
        ("", Some("nobody"), &[]),
        ("", None, &["a", "b", "c", "d", "e"]),
    ] {
        assert_eq!(
            found(&store, search, agent).await,
            expected,
            "{search} {agent:?}"
        );
    }
}

pub async fn a_search_is_bounded_and_goes_on(backend: &impl Backend) {
    let store = backend.open().await;
    create(&store, "first", "needle", "a").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    for number in 0..=MAX_SCANNED {
        create(&store, &format!("c{number}"), "hay", "a").await;
    }
    let (rows, pages) = all(&store, 50, &ListFilter::new(Some("needle"), None)).await;
    assert_eq!(
        (rows.len(), pages),
        (1, 2),
        "found behind the rows that one page looks at"
    );
    assert_eq!(rows[0].id, "first");
}

/// Stores a reply that took 100 tokens and wrote 10.
async fn reply(turn: &Turn<impl TurnStore>, nano_usd: Option<u64>) {
    let reply = LlmCompleteState {
        cost_nano_usd: nano_usd,
        cached_tokens: 60,
        ..state("said", Vec::new())
    };
    let stored = turn.store.complete_step(&turn.step(0), reply).await;
    stored.unwrap();
}

/// Returns the tokens and the cost of the conversation `c`.
async fn spent(store: &impl Conversations) -> (u32, u32, u32, Option<u64>) {
    let shown = store.shown_conversation(&tenant(), "c").await.unwrap();
    let spent = shown.unwrap().spent;
    let usage = spent.usage;
    let cached = usage.cached_tokens;
    (
        usage.input_tokens,
        usage.output_tokens,
        cached,
        spent.nano_usd,
    )
}

pub async fn a_conversation_adds_up_its_calls(backend: &impl Backend) {
    let store = backend.open().await;
    let first = Turn::begun(store.clone(), "c", "m1").await;
    assert_eq!(spent(&store).await, (0, 0, 0, None));
    reply(&first, Some(3)).await;
    assert_eq!(spent(&store).await, (100, 10, 60, Some(3)), "while it runs");
    for _ in 0..2 {
        first.end(0, AgentExecutionStatus::Completed).await;
        assert_eq!(spent(&store).await, (100, 10, 60, Some(3)), "it ends once");
    }
    let second = Turn::begun(store.clone(), "c", "m2").await;
    reply(&second, None).await;
    assert_eq!(spent(&store).await, (200, 20, 120, Some(3)));
    second.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(spent(&store).await, (200, 20, 120, Some(3)));
    let third = Turn::begun(store.clone(), "c", "m3").await;
    reply(&third, Some(4)).await;
    third.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(spent(&store).await, (300, 30, 180, Some(7)));

    let stranger = Access::tenant("stranger");
    let shown = store.shown_conversation(&stranger, "c").await.unwrap();
    assert_eq!(shown, None);
}

pub async fn conversations_that_wait_are_found(backend: &impl Backend) {
    let store = backend.open().await;
    for id in ["a", "b", "runs"] {
        let turn = Turn::begun(store.clone(), id, "m").await;
        let call = ToolCall {
            approval_timeout_s: (id != "runs").then_some(60),
            ..turn.call(0, 0, Effect::Once)
        };
        let asked = state("look", vec![call]);
        turn.store
            .complete_step(&turn.step(0), asked)
            .await
            .unwrap();
        turn.thought(0).await;
    }
    create(&store, "idle", "", "a").await;
    let filter = |party| ListFilter::default().waiting_for(Some(party));
    let (rows, _) = all(&store, 1, &filter(WaitingFor::Approval)).await;
    let ids: Vec<_> = rows.iter().map(Conversation::name).collect();
    assert_eq!(ids, ["b", "a"], "the last updated first, in pages");
    let (rows, _) = all(&store, 9, &filter(WaitingFor::ClientTool)).await;
    assert!(rows.is_empty(), "{rows:?}");
    let query = ListQuery {
        limit: 9,
        filter: filter(WaitingFor::Approval),
        ..ListQuery::default()
    };
    for access in [
        Access::tenant("stranger"),
        Access {
            owner_id: Some("nobody".into()),
            ..tenant()
        },
    ] {
        let page = store.list_conversations(&access, &query).await.unwrap();
        assert!(page.conversations.is_empty(), "{access:?}");
    }
}
