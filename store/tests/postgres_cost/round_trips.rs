//! Counts the round trips of each call. They do not depend on the size of a batch.

use everturn_proto::{
    Thread,
    event::ModelFallback,
    ids,
    turn::{LlmCompleteState, ReadInboxRequest},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    AgentExecutions, BackgroundResponse, BeginTurn, ChainPosition, ConversationChange,
    Conversations, EventReader, FailedCall, FailedTry, KeyKind, KeyMaker, Keys, ListQuery,
    MessageQueue, ModelCalls, NewConversation, NewKey, OnUnknownAgent, Owners, PageLimit,
    PostgresOptions, PostgresStore, ResultRange, StepClaims, ToolClaims, ToolResults, TraceContext,
    TraceContexts, TraceKey, TurnInputs, TurnStart, Turns, WantedLinks, WorkerId,
};

use crate::{
    costs::Costs,
    fixture::{self, Turn, delegating_agent, new_message, tenant},
    support::{line::Line, postgres::Database},
};

pub(crate) async fn watched() -> (Line, PostgresStore) {
    let database = Database::migrated().await;
    let line = Line::to(database.port()).await;
    // There is only one connection, so a statement that was prepared once stays prepared.
    let options = PostgresOptions {
        max_connections: 1,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url_at(line.port), options)
        .await
        .unwrap();
    (line, store)
}

/// Runs a turn of two steps with `tools` tools, one of which is still open when the turn is cancelled, and makes every
/// other call of the store beside it.
async fn turn_with(
    costs: &mut Costs<'_>,
    store: &PostgresStore,
    id: &str,
    tools: usize,
    is_cancelled: bool,
) {
    accept(costs, store, id).await;
    let turn = Turn::new(store.clone(), id, "m");
    first_step(costs, &turn, tools).await;
    run_tools(costs, &turn, tools, is_cancelled).await;
    end(costs, &turn, is_cancelled).await;
    begin_others(costs, store, id).await;
    failed_calls(costs, store, id).await;
    read(costs, &turn).await;
    change_conversations(costs, store, id).await;
    keys(costs, store, id).await;
    traces(costs, store, id).await;
}

async fn accept(costs: &mut Costs<'_>, store: &PostgresStore, id: &str) {
    costs.of("create_conversation", create(store, id)).await;
    let access = tenant();
    for name in ["queue_message", "queue_message, repeated"] {
        let queued = store.queue_message(&access, new_message(id, "m", Some("client")));
        costs.of(name, queued).await.unwrap();
    }
}

async fn create(store: &PostgresStore, id: &str) {
    let new = NewConversation::new(id, tenant(), "a");
    store.create_conversation(new).await.unwrap();
}

async fn first_step(costs: &mut Costs<'_>, turn: &Turn<PostgresStore>, tools: usize) {
    let (store, id) = (&turn.store, turn.conversation.as_str());
    let begun = store.begin_turn(turn.begin(""));
    costs.of("begin_turn", begun).await.unwrap();
    let names = ["begin_turn, a turn runs", "begin_turn, takes over"];
    begin_again(costs, turn, names).await;
    let step = turn.step(0);
    let claimed = store.claim_step(&step, None);
    costs.of("claim_step", claimed).await.unwrap();
    let response = BackgroundResponse {
        provider: "p".into(),
        model: "m".into(),
        id: "resp_1".into(),
    };
    let noted = store.note_response(&step, 1, &response);
    costs.of("note_response", noted).await.unwrap();
    let context = store.context(id, &Thread::Conversation, PageLimit::rows(100), None);
    costs.of("context", context).await.unwrap();
    let calls: Vec<_> = (0..tools)
        .map(|index| turn.call(0, index, Effect::Read))
        .collect();
    let state: LlmCompleteState = fixture::state("look", calls);
    let completed = store.complete_step(&step, state);
    costs.of("complete_step", completed).await.unwrap();
    let claimed = store.claim_step(&step, None);
    costs.of("claim_step, stored", claimed).await.unwrap();
    costs.of("save thought", turn.thought(0)).await;
    // From here on the store no longer knows what it has written.
    costs.of("save, repeated", turn.thought(0)).await;
}

/// Notes failed calls of a turn of its own: the event of a fallback makes the next save read the turn again.
async fn failed_calls(costs: &mut Costs<'_>, store: &PostgresStore, id: &str) {
    let turn = Turn::begun(store.clone(), &format!("{id}-fails"), "m").await;
    let step = turn.step(0);
    turn.store.claim_step(&step, None).await.unwrap();
    let mut failed = FailedCall {
        chain: ChainPosition::default(),
        calls: 1,
        fallback: None,
    };
    let noted = store.note_failed_call(&step, 1, &failed);
    costs.of("note_failed_call", noted).await.unwrap();
    let tried = FailedTry {
        generation: 1,
        model: "p/m".into(),
        worker: WorkerId::random(),
        code: "llm_unavailable".into(),
        reason: "It was away.".into(),
        is_final: false,
        retry_after: None,
        started_at: chrono::DateTime::default(),
        keep: 20,
    };
    let noted = store.note_try(&step, &tried);
    costs.of("note_try", noted).await.unwrap();
    failed.fallback = Some(ModelFallback::default());
    let noted = store.note_failed_call(&step, 1, &failed);
    let noted = costs.of("note_failed_call, falls back", noted).await;
    noted.unwrap();
}

async fn run_tools(
    costs: &mut Costs<'_>,
    turn: &Turn<PostgresStore>,
    tools: usize,
    is_cancelled: bool,
) {
    for index in usize::from(is_cancelled)..tools {
        let key = turn.tool(0, index);
        let claimed = turn.store.claim_tool(&key, "a");
        costs.of("claim_tool", claimed).await.unwrap();
        let finished = turn.store.finish_tool(&key, fixture::tool_end("1"));
        costs.of("finish_tool", finished).await.unwrap();
        if !is_cancelled {
            costs.of("save observe", turn.observe(0, index, "")).await;
        }
    }
}

async fn end(costs: &mut Costs<'_>, turn: &Turn<PostgresStore>, is_cancelled: bool) {
    turn.queue("s").await;
    costs.of("save steer", turn.take("s")).await;
    if is_cancelled {
        let step = turn.step(1);
        let saved = turn
            .store
            .save_partial(&step, fixture::state("so far", vec![]));
        costs.of("save_partial", saved).await.unwrap();
        let ended = turn.end(1, AgentExecutionStatus::Cancelled);
        costs.of("save end, cancelled with open tools", ended).await;
    } else {
        turn.complete(1, "answer", &[]).await;
        let ended = turn.end(1, AgentExecutionStatus::Completed);
        costs.of("save end", ended).await;
    }
}

async fn begin_others(costs: &mut Costs<'_>, store: &PostgresStore, id: &str) {
    let new = Turn::new(store.clone(), &format!("{id}-new"), "m");
    let begun = store.begin_turn(new.begin("hello"));
    costs.of("begin_turn, all new", begun).await.unwrap();
    let withdrawn = Turn::new(store.clone(), id, "withdrawn");
    withdrawn.queue("withdrawn").await;
    let access = tenant();
    let withdrawn = store.withdraw_message(&access, id, "withdrawn");
    costs.of("withdraw_message", withdrawn).await.unwrap();
    let cancelled = store.cancel_message(&access, id, "withdrawn", "no longer needed");
    costs.of("cancel_message", cancelled).await.unwrap();
    let look = ReadInboxRequest {
        conversation_id: id.to_owned(),
        ..ReadInboxRequest::default()
    };
    let during = ReadInboxRequest {
        message_id: Some("withdrawn".to_owned()),
        ..look.clone()
    };
    let look = store.read_inbox(&look);
    costs.of("read_inbox", look).await.unwrap();
    let look = store.read_inbox(&during);
    costs.of("read_inbox, during a turn", look).await.unwrap();
    let lost = Turn::begun(store.clone(), id, "lost").await;
    lost.queue("next").await;
    let next = Turn::new(store.clone(), id, "next");
    let names = [
        "begin_turn, another turn runs",
        "begin_turn, after a lost one",
    ];
    begin_again(costs, &next, names).await;
}

/// Begins a turn where one runs: the first request gets an epoch, and the second one names it.
async fn begin_again(costs: &mut Costs<'_>, turn: &Turn<PostgresStore>, names: [&'static str; 2]) {
    let mut begin = turn.begin("");
    for name in names {
        let asked = turn.store.begin_turn(begin.clone());
        if let TurnStart::AskAgain { epoch } = costs.of(name, asked).await.unwrap() {
            begin.epoch = Some(epoch);
        }
    }
}

async fn read(costs: &mut Costs<'_>, turn: &Turn<PostgresStore>) {
    let (store, id, access) = (&turn.store, turn.conversation.as_str(), tenant());
    let log = turn.conversation().await.log();
    let events = store.events(&access, &log, 1, PageLimit::rows(100));
    costs.of("events", events).await.unwrap();
    let before = store.events_before(&access, &log, 9, PageLimit::rows(100));
    costs.of("events_before", before).await.unwrap();
    let wanted = WantedLinks::default();
    let links = store.event_links(&access, &log, &wanted);
    costs.of("event_links", links).await.unwrap();
    let point = store.resume_point(&access, id, 100);
    costs.of("resume_point", point).await.unwrap();
    let execution_id = turn.execution_id(0, 0);
    let slice = store.tool_result(&access, id, &execution_id, ResultRange::new(0, 100));
    costs.of("tool_result", slice).await.unwrap();
    let status = store.conversation_head(&access, id);
    costs.of("conversation_status", status).await.unwrap();
    let sequences = store.last_sequences(std::slice::from_ref(&turn.conversation));
    costs.of("last_sequences", sequences).await.unwrap();
    let found = store.conversation(&access, id);
    costs.of("conversation", found).await.unwrap();
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = store.list_conversations(&access, &query);
    costs.of("list_conversations", page).await.unwrap();
    let versions = store.list_versions(std::slice::from_ref(&access));
    costs.of("list_versions", versions).await.unwrap();
}

async fn change_conversations(costs: &mut Costs<'_>, store: &PostgresStore, id: &str) {
    let access = tenant();
    let title = ConversationChange::of_title("title");
    let changed = store.change_conversation(&access, id, &title);
    costs.of("change_conversation", changed).await.unwrap();
    let other = format!("{id}-new");
    let deleted = store.delete_conversation(&access, &other, None);
    costs.of("delete_conversation", deleted).await.unwrap();
}

/// The calls of processes that export traces.
async fn traces(costs: &mut Costs<'_>, store: &PostgresStore, id: &str) {
    let key = TraceKey::of(id, "run_1");
    let context = TraceContext {
        trace_parent: String::new(),
        trace_state: String::new(),
    };
    let offered = costs.of("offer_trace", store.offer_trace(&key, &context));
    offered.await.unwrap();
    let begun = costs.of("begin_trace", store.begin_trace(&key, &context, "a"));
    begun.await.unwrap();
    costs.of("trace_of", store.trace_of(&key)).await.unwrap();
}

async fn keys(costs: &mut Costs<'_>, store: &PostgresStore, id: &str) {
    let key = NewKey {
        id: id.into(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: vec![1],
        access: tenant(),
        scopes: "read".into(),
        name: String::new(),
        made_by: KeyMaker::default(),
        expires_at: None,
        signed_in_at: None,
    };
    let created = store.create_key(key, None);
    costs.of("create_key", created).await.unwrap();
    costs.of("find_key", store.find_key(id)).await.unwrap();
    let state = store.owner_state("t", "ann");
    costs.of("owner_state", state).await.unwrap();
}

/// The round trips of each call, as the table in `store/src/backend/mod.rs` has them.
const COSTS: [(&str, u64); 48] = [
    ("create_conversation", 1),
    ("create_key", 1),
    ("find_key", 1),
    ("owner_state", 1),
    ("queue_message", 1),
    ("queue_message, repeated", 6),
    ("begin_turn", 2),
    ("begin_turn, all new", 9),
    ("begin_turn, a turn runs", 6),
    ("begin_turn, takes over", 6),
    ("begin_turn, another turn runs", 7),
    ("begin_turn, after a lost one", 13),
    ("resume_point", 1),
    ("tool_result", 1),
    ("withdraw_message", 5),
    ("cancel_message", 4),
    ("read_inbox", 1),
    ("read_inbox, during a turn", 2),
    ("claim_step", 1),
    ("claim_step, stored", 3),
    ("note_response", 1),
    ("note_failed_call", 1),
    ("note_try", 1),
    ("note_failed_call, falls back", 6),
    ("complete_step", 1),
    ("save_partial", 1),
    ("context", 1),
    ("save thought", 1),
    ("save, repeated", 6),
    ("claim_tool", 1),
    ("finish_tool", 1),
    ("save observe", 2),
    ("save steer", 6),
    ("save end", 2),
    ("save end, cancelled with open tools", 11),
    ("events", 1),
    ("events_before", 1),
    ("event_links", 1),
    ("conversation_status", 1),
    ("last_sequences", 1),
    ("conversation", 1),
    ("list_conversations", 1),
    ("list_versions", 1),
    ("change_conversation", 1),
    ("delete_conversation", 21),
    ("offer_trace", 1),
    ("begin_trace", 1),
    ("trace_of", 1),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_trips_do_not_depend_on_the_size_of_a_batch() {
    let (line, store) = watched().await;
    let mut costs = Costs::new(&line);
    for is_cancelled in [false, true] {
        for (tools, warm_ups) in [(1, 1), (6, 1), (100, 0)] {
            for number in 0..=warm_ups {
                costs.measured.clear();
                turn_with(
                    &mut costs,
                    &store,
                    &format!("c{is_cancelled}{tools}{number}"),
                    tools,
                    is_cancelled,
                )
                .await;
            }
            for (name, measured) in &costs.measured {
                let (_, expected) = COSTS.iter().find(|(known, _)| known == name).unwrap();
                // A statement with many rows is prepared each time.
                let is_large = tools > 8
                    && matches!(
                        *name,
                        "save thought" | "save end, cancelled with open tools"
                    );
                let expected = expected + u64::from(is_large);
                assert_eq!(
                    *measured, expected,
                    "{name} with {tools} tools; all: {:?}",
                    costs.measured
                );
            }
        }
    }
}

async fn context(store: &PostgresStore, id: &str) {
    let context = store.context(id, &Thread::Conversation, PageLimit::rows(100), None);
    context.await.unwrap();
}

/// Counts what a worker asks for in a turn of two steps with two tools (docs/design/costs.md).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_of_two_steps_and_two_tools() {
    let (line, store) = watched().await;
    let mut costs = Costs::new(&line);
    for id in ["warm", "c"] {
        costs.measured.clear();
        let turn = Turn::new(store.clone(), id, "m");
        let turn = &turn;
        create(&store, id).await;
        turn.queue("m").await;
        costs.line.round_trips();
        let whole = async {
            store.begin_turn(turn.begin("")).await.unwrap();
            store.claim_step(&turn.step(0), None).await.unwrap();
            context(&store, id).await;
            let calls: Vec<_> = (0..2)
                .map(|index| turn.call(0, index, Effect::Read))
                .collect();
            let state = fixture::state("look", calls);
            store.complete_step(&turn.step(0), state).await.unwrap();
            turn.thought(0).await;
            turn.runs(0, 0).await;
            turn.runs(0, 1).await;
            store.claim_step(&turn.step(1), None).await.unwrap();
            context(&store, id).await;
            turn.complete(1, "answer", &[]).await;
            turn.end(1, AgentExecutionStatus::Completed).await;
        };
        costs.of("turn", whole).await;
    }
    assert_eq!(costs.measured, [("turn", 16)]);
    assert_eq!(Turn::new(store, "c", "m").events().await.len(), 8);
}

/// Counts what hooks cost beside their tools.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks() {
    let (line, store) = watched().await;
    let mut costs = Costs::new(&line);
    for id in ["warm", "c"] {
        costs.measured.clear();
        let turn = Turn::begun(store.clone(), id, "m").await;
        turn.complete(0, "answer", &[]).await;
        turn.end(0, AgentExecutionStatus::Completed).await;
        costs.of("owner_of", store.owner_of(id)).await.unwrap();
        let ids = ["m".to_owned()];
        let texts = store.message_texts(id, &ids);
        costs.of("message_texts", texts).await.unwrap();
        let (step, calls) = (turn.step(1), [turn.call(1, 0, Effect::Read)]);
        let begun = store.begin_after_turn(&step, &calls);
        costs.of("begin_after_turn", begun).await.unwrap();
    }
    let expected = [
        ("owner_of", 1),
        ("message_texts", 1),
        ("begin_after_turn", 6),
    ];
    assert_eq!(costs.measured, expected);
}

/// Counts the begin and the end of a sub-agent (docs/design/costs.md).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_agent() {
    let (line, store) = watched().await;
    let mut costs = Costs::new(&line);
    for id in ["warm", "c"] {
        costs.measured.clear();
        let turn = Turn::new(store.clone(), id, "m");
        sub_agent_of(&mut costs, &turn).await;
    }
    let expected = [
        ("begin_sub_agent", 7),
        ("begin_sub_agent, repeated", 4),
        ("save end of a sub-agent", 10),
        ("agent_executions", 1),
        ("waiting_call", 1),
    ];
    assert_eq!(costs.measured, expected);
}

async fn sub_agent_of(costs: &mut Costs<'_>, turn: &Turn<PostgresStore>) {
    let (store, id, agent) = (&turn.store, &turn.conversation, delegating_agent());
    let agents = [("default".to_owned(), agent.clone())].into();
    let begin = turn.begin("share");
    let begun = store.begin_turn(BeginTurn { agent, ..begin });
    begun.await.unwrap();
    let state = fixture::state("sharing", vec![turn.delegate_call(0, 0)]);
    store.complete_step(&turn.step(0), state).await.unwrap();
    turn.thought(0).await;
    let key = turn.tool(0, 0);
    for name in ["begin_sub_agent", "begin_sub_agent, repeated"] {
        let begun = store.begin_sub_agent(&key, &agents, OnUnknownAgent::Begin);
        costs.of(name, begun).await.unwrap();
    }
    let sub_agent = Turn {
        execution: ids::sub_agent_execution_id(id, &key.execution_id),
        ..turn.clone()
    };
    sub_agent.complete(0, "found", &[]).await;
    let ended = sub_agent.end(0, AgentExecutionStatus::Completed);
    costs.of("save end of a sub-agent", ended).await;
    let access = tenant();
    let tree = store.agent_executions(&access, id, None, None, 100);
    costs.of("agent_executions", tree).await.unwrap();
    let waiting = store.waiting_call(&access, id);
    costs.of("waiting_call", waiting).await.unwrap();
}
