//! What PostgreSQL is asked to do: round trips a call, and plans of the hot queries at 1,000,000 events.

#![allow(clippy::unwrap_used)]

#[path = "conformance/fixture.rs"]
#[allow(dead_code, unreachable_pub)]
mod fixture;
mod support;

use std::future::Future;

use everturn_proto::{
    ids,
    turn::{AgentDefinition, AgentTool, LlmCompleteState, ToolCall},
    words::{effect, execution_status, tool_kind},
};
use everturn_store::{
    AgentExecutions, BeginTurn, Conversations, EventReader, KeyKind, Keys, ListQuery, MAX_SCANNED,
    NewConversation, NewKey, PostgresOptions, PostgresStore, ResultRange, ToolResults, TurnStore,
    hot,
};
use fixture::{Turn, new_message, tenant};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};
use support::{line::Line, postgres::Database};

// ---- round trips -----------------------------------------------------------------------------------

async fn watched() -> (Line, PostgresStore) {
    let database = Database::migrated().await;
    let line = Line::to(Database::port()).await;
    // One connection, so that what it has prepared is prepared.
    let options = PostgresOptions {
        max_connections: 1,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url_at(line.port), options)
        .await
        .unwrap();
    (line, store)
}

struct Costs<'a> {
    line: &'a Line,
    measured: Vec<(&'static str, u32)>,
}

impl Costs<'_> {
    async fn of<T>(&mut self, name: &'static str, call: impl Future<Output = T>) -> T {
        self.line.round_trips();
        let done = call.await;
        self.measured.push((name, self.line.round_trips()));
        done
    }
}

/// A turn of two steps with `tools` tools, one of which is left to the end when the turn is cancelled.
async fn turn_with(
    costs: &mut Costs<'_>,
    store: &PostgresStore,
    id: &str,
    tools: usize,
    is_cancelled: bool,
) {
    let new = NewConversation {
        id: id.into(),
        access: tenant(),
        agent: "a".into(),
        title: String::new(),
    };
    costs
        .of("create_conversation", store.create_conversation(new))
        .await
        .unwrap();
    costs
        .of(
            "queue_message",
            store.queue_message(&tenant(), new_message(id, "m", Some("client"))),
        )
        .await
        .unwrap();
    costs
        .of(
            "queue_message, repeated",
            store.queue_message(&tenant(), new_message(id, "m", Some("client"))),
        )
        .await
        .unwrap();
    let turn = Turn::new(store.clone(), id, "m");
    costs
        .of("begin_turn", store.begin_turn(turn.begin("")))
        .await
        .unwrap();
    costs
        .of("begin_turn, repeated", store.begin_turn(turn.begin("")))
        .await
        .unwrap();
    costs
        .of("claim_step", store.claim_step(&turn.step(0)))
        .await
        .unwrap();
    costs
        .of("context", store.context(id, "", 100))
        .await
        .unwrap();
    let calls: Vec<_> = (0..tools)
        .map(|index| turn.call(0, index, effect::READ))
        .collect();
    let call_ids: Vec<_> = calls.iter().map(|call| call.call_id.clone()).collect();
    costs
        .of("used_call_ids", store.used_call_ids(id, &call_ids))
        .await
        .unwrap();
    let state: LlmCompleteState = fixture::state("look", calls);
    costs
        .of("complete_step", store.complete_step(&turn.step(0), state))
        .await
        .unwrap();
    costs
        .of("claim_step, stored", store.claim_step(&turn.step(0)))
        .await
        .unwrap();
    costs.of("save thought", turn.thought(0)).await;
    costs.of("save, repeated", turn.thought(0)).await;
    for index in usize::from(is_cancelled)..tools {
        costs
            .of("claim_tool", store.claim_tool(&turn.tool(0, index), "a"))
            .await
            .unwrap();
        let end = fixture::tool_end("1");
        costs
            .of("finish_tool", store.finish_tool(&turn.tool(0, index), end))
            .await
            .unwrap();
        if !is_cancelled {
            costs.of("save observe", turn.observe(0, index, "")).await;
        }
    }
    costs.of("save steer", turn.steer("s", "and this")).await;
    if is_cancelled {
        let partial = fixture::state("so far", vec![]);
        costs
            .of("save_partial", store.save_partial(&turn.step(1), partial))
            .await
            .unwrap();
        costs
            .of(
                "save end, cancelled with open tools",
                turn.end(1, execution_status::CANCELLED),
            )
            .await;
    } else {
        turn.complete(1, "answer", &[]).await;
        costs
            .of("save end", turn.end(1, execution_status::COMPLETED))
            .await;
    }
    let new = Turn::new(store.clone(), &format!("{id}-new"), "m");
    costs
        .of("begin_turn, all new", store.begin_turn(new.begin("hello")))
        .await
        .unwrap();
    costs
        .of("events", store.events(&tenant(), id, 1, 100))
        .await
        .unwrap();
    costs
        .of("resume_point", store.resume_point(&tenant(), id, 100))
        .await
        .unwrap();
    Turn::new(store.clone(), id, "withdrawn")
        .queue("withdrawn")
        .await;
    costs
        .of(
            "withdraw_message",
            store.withdraw_message(&tenant(), id, "withdrawn"),
        )
        .await
        .unwrap();
    costs
        .of(
            "tool_result",
            store.tool_result(
                &tenant(),
                id,
                &turn.execution_id(0, 0),
                ResultRange::new(0, 100),
            ),
        )
        .await
        .unwrap();
    let lost = Turn::begun(store.clone(), id, "lost").await;
    lost.queue("next").await;
    let next = Turn::new(store.clone(), id, "next");
    costs
        .of(
            "begin_turn, after a lost one",
            store.begin_turn(next.begin("")),
        )
        .await
        .unwrap();
    costs
        .of(
            "conversation_status",
            store.conversation_status(&tenant(), id),
        )
        .await
        .unwrap();
    costs
        .of("last_sequences", store.last_sequences(&[id.to_owned()]))
        .await
        .unwrap();
    costs
        .of("conversation", store.conversation(&tenant(), id))
        .await
        .unwrap();
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    costs
        .of(
            "list_conversations",
            store.list_conversations(&tenant(), &query),
        )
        .await
        .unwrap();
    costs
        .of(
            "rename_conversation",
            store.rename_conversation(&tenant(), id, "title"),
        )
        .await
        .unwrap();
    costs
        .of(
            "delete_conversation",
            store.delete_conversation(&tenant(), &new.conversation),
        )
        .await
        .unwrap();
    let key = NewKey {
        id: id.into(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: vec![1],
        access: tenant(),
        scopes: "read".into(),
        name: String::new(),
        expires_at: None,
    };
    costs.of("create_key", store.create_key(key)).await.unwrap();
    costs.of("find_key", store.find_key(id)).await.unwrap();
}

/// The numbers of `store/src/backend/mod.rs`.
const COSTS: [(&str, u32); 33] = [
    ("create_conversation", 1),
    ("create_key", 1),
    ("find_key", 1),
    ("queue_message", 4),
    ("queue_message, repeated", 5),
    ("begin_turn", 11),
    ("begin_turn, all new", 13),
    ("begin_turn, repeated", 4),
    ("begin_turn, after a lost one", 18),
    ("resume_point", 1),
    ("tool_result", 1),
    ("withdraw_message", 4),
    ("claim_step", 1),
    ("claim_step, stored", 3),
    ("complete_step", 1),
    ("save_partial", 1),
    ("context", 1),
    ("used_call_ids", 1),
    ("save thought", 11),
    ("save, repeated", 5),
    ("claim_tool", 4),
    ("finish_tool", 1),
    ("save observe", 10),
    ("save steer", 8),
    ("save end", 12),
    ("save end, cancelled with open tools", 14),
    ("events", 1),
    ("conversation_status", 1),
    ("last_sequences", 1),
    ("conversation", 1),
    ("list_conversations", 1),
    ("rename_conversation", 1),
    ("delete_conversation", 14),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_trips_do_not_depend_on_the_size_of_a_batch() {
    let (line, store) = watched().await;
    let mut costs = Costs {
        line: &line,
        measured: Vec::new(),
    };
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
                // An insert of many rows is prepared each time: its events, and its tool records.
                let is_large = tools > 8
                    && matches!(
                        *name,
                        "save thought" | "save end, cancelled with open tools"
                    );
                let expected = expected + if is_large { 2 } else { 0 };
                assert_eq!(
                    *measured, expected,
                    "{name} with {tools} tools; all: {:?}",
                    costs.measured
                );
            }
        }
    }
}

/// ARCHITECTURE "What a turn costs": what a worker and a gateway ask for in a turn of two steps with two tools.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_of_two_steps_and_two_tools() {
    let (line, store) = watched().await;
    let mut costs = Costs {
        line: &line,
        measured: Vec::new(),
    };
    for id in ["warm", "c"] {
        costs.measured.clear();
        let turn = Turn::new(store.clone(), id, "m");
        let turn = &turn;
        let whole = async {
            store.begin_turn(turn.begin("hello")).await.unwrap();
            store.claim_step(&turn.step(0)).await.unwrap();
            store.context(id, "", 100).await.unwrap();
            let calls: Vec<_> = (0..2)
                .map(|index| turn.call(0, index, effect::READ))
                .collect();
            let call_ids: Vec<_> = calls.iter().map(|call| call.call_id.clone()).collect();
            store.used_call_ids(id, &call_ids).await.unwrap();
            let state = fixture::state("look", calls);
            store.complete_step(&turn.step(0), state).await.unwrap();
            turn.thought(0).await;
            turn.runs(0, 0).await;
            turn.runs(0, 1).await;
            store.claim_step(&turn.step(1)).await.unwrap();
            store.context(id, "", 100).await.unwrap();
            turn.complete(1, "answer", &[]).await;
            turn.end(1, execution_status::COMPLETED).await;
        };
        costs.of("turn", whole).await;
    }
    assert_eq!(costs.measured, [("turn", 73)]);
    assert_eq!(
        store
            .events(&tenant(), "c", 1, 100)
            .await
            .unwrap()
            .events
            .len(),
        8
    );
}

/// ARCHITECTURE "What a turn costs": the begin and the end of a sub-agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_agent() {
    let (line, store) = watched().await;
    let mut costs = Costs {
        line: &line,
        measured: Vec::new(),
    };
    let kind = tool_kind::DELEGATE.to_owned();
    let tool = AgentTool {
        kind: kind.clone(),
        delegates: vec!["default".into()],
        ..AgentTool::default()
    };
    let agent = AgentDefinition {
        tools: vec![tool],
        max_depth: 1,
        max_sub_agents: 1,
        ..fixture::agent()
    };
    let agents = [("default".to_owned(), agent.clone())].into();
    for id in ["warm", "c"] {
        costs.measured.clear();
        let turn = Turn::new(store.clone(), id, "m");
        store
            .begin_turn(BeginTurn {
                agent: agent.clone(),
                ..turn.begin("share")
            })
            .await
            .unwrap();
        let tool_input = Some(fixture::json(r#"{"agent": "default", "task": "look"}"#));
        let call = ToolCall {
            kind: kind.clone(),
            tool_input,
            ..turn.call(0, 0, effect::IDEMPOTENT)
        };
        store
            .complete_step(&turn.step(0), fixture::state("sharing", vec![call]))
            .await
            .unwrap();
        turn.thought(0).await;
        let key = turn.tool(0, 0);
        costs
            .of("begin_sub_agent", store.begin_sub_agent(&key, &agents))
            .await
            .unwrap();
        costs
            .of(
                "begin_sub_agent, repeated",
                store.begin_sub_agent(&key, &agents),
            )
            .await
            .unwrap();
        let execution = ids::sub_agent_execution_id(id, &key.execution_id);
        let sub = Turn {
            execution,
            ..turn.clone()
        };
        sub.complete(0, "found", &[]).await;
        costs
            .of(
                "save end of a sub-agent",
                sub.end(0, execution_status::COMPLETED),
            )
            .await;
        costs
            .of(
                "agent_executions",
                store.agent_executions(&tenant(), id, None, 100),
            )
            .await
            .unwrap();
    }
    let expected = [
        ("begin_sub_agent", 12),
        ("begin_sub_agent, repeated", 4),
        ("save end of a sub-agent", 14),
        ("agent_executions", 1),
    ];
    assert_eq!(costs.measured, expected);
}

// ---- plans -----------------------------------------------------------------------------------------

const CONVERSATIONS: u32 = 10_000;

/// 1,000,000 events in 10,000 conversations: 90 each, and one of 100,090 that statistics hardly show. They lie in the
/// table as they came in, those of one conversation far from each other.
async fn fill(connection: &mut PgConnection) {
    let fill = "
        -- No foreign keys while this is loaded, and no statistics.
        SET session_replication_role = replica;
        ALTER TABLE agent_execution_events SET (autovacuum_enabled = off);
        INSERT INTO agent_definitions SELECT 'h' || n, '{}' FROM generate_series(1, 1000) n;
        INSERT INTO agent_definitions VALUES ('h', '{}');
        INSERT INTO conversations (id, tenant_id, owner_id, agent, title, last_sequence, created_at, updated_at)
            SELECT 'c' || n, 't', CASE n % 100 WHEN 0 THEN 'o' ELSE 'p' END, 'a', '', CASE n WHEN 1 THEN 100090 ELSE 90 END, now(), now() + n * interval '1 s'
            FROM generate_series(1, 10000) n;
        INSERT INTO messages SELECT id, 'm' || k, 'user', 'taken', 'client' || k, 'e' || k || id, NULL, k, now(), '', '[]', '[]'
            FROM conversations, generate_series(1, 5) k;
        INSERT INTO agent_executions (id, conversation_id, message_id, root_execution_id, depth, agent, agent_hash,
            status, started_at, tenant_id)
            SELECT 'e' || k || id, id, 'm' || k, 'e' || k || id, 0, 'a', 'h',
                CASE k WHEN 1 THEN 'running' ELSE 'completed' END, now(), tenant_id
            FROM conversations, generate_series(1, 5) k;
        INSERT INTO execution_checkpoints (id, conversation_id, message_id, agent_execution_id, checkpoint_type,
            step_number, created_at, execution_state)
            SELECT id || '/' || k, id, 'm1', 'e1' || id, 'llm_complete', k, now(), '{}'
            FROM conversations, generate_series(0, 2) k;
        INSERT INTO tool_execution_records (conversation_id, execution_id, message_id, agent_execution_id, step,
            call_index, call_id, tool_name, effect, timeout_ms, status, observed_sequence, created_at, signatures,
            tool_input, events)
            SELECT id, 'exec_' || k, 'm1', 'e1' || id, 0, k, 'call_' || k, 'tool', 'read', 1,
                CASE k WHEN 3 THEN 'running' ELSE 'completed' END, CASE k WHEN 3 THEN NULL ELSE k END, now(), '[]', '{}', '[]'
            FROM conversations, generate_series(1, 3) k;
        INSERT INTO agent_execution_events
            SELECT md5(c || '/' || n), 'c' || c, 'm1', 'observe', n, 'm1/x/0/observe', now(), '{\"content\": \"text\"}'
            FROM generate_series(1, 90) n, generate_series(1, 10000) c;
        INSERT INTO agent_execution_events
            SELECT md5('1/' || n), 'c1', 'm1', 'observe', n, 'm1/x/0/observe', now(), '{\"content\": \"text\"}'
            FROM generate_series(91, 100090) n;
        SET session_replication_role = DEFAULT";
    sqlx::raw_sql(fill).execute(connection).await.unwrap();
}

/// What a plan did.
#[derive(Debug, Default)]
struct Did {
    /// Type of each node, with its index.
    nodes: Vec<String>,
    /// Rows that indexes gave of tables.
    rows_read: u64,
    /// Rows that were read and then not wanted.
    rows_dropped: u64,
    rows_returned: u64,
    /// Pages of 8 KiB.
    pages: u64,
}

impl Did {
    fn of(explained: &Value) -> Self {
        let plan = &explained[0]["Plan"];
        let pages = number(&plan["Shared Hit Blocks"]) + number(&plan["Shared Read Blocks"]);
        let mut did = Self {
            rows_returned: number(&plan["Actual Rows"]),
            pages,
            ..Self::default()
        };
        did.add(plan);
        did
    }

    fn add(&mut self, node: &Value) {
        let kind = node["Node Type"].as_str().unwrap();
        self.nodes.push(
            format!("{kind} {}", node["Index Name"].as_str().unwrap_or_default())
                .trim()
                .to_owned(),
        );
        if node["Relation Name"].is_string() && kind != "ModifyTable" {
            self.rows_read += number(&node["Actual Rows"]) * number(&node["Actual Loops"]);
        }
        self.rows_dropped += number(&node["Rows Removed by Filter"]);
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.add(child);
        }
    }
}

impl Did {
    fn check(&self, name: &str, most_rows: u64) {
        assert!(
            !self.nodes.iter().any(|node| node == "Seq Scan"),
            "{name}: {self:?}"
        );
        assert!(
            self.rows_read <= most_rows && self.rows_dropped == 0,
            "{name}: {self:?}"
        );
        // Each row is at most one page of the table, and each look-up a few of an index.
        assert!(self.pages <= 2 * most_rows + 40, "{name}: {self:?}");
        if name.contains("page") {
            // And the conversation, once: may the caller see it?
            assert_eq!(self.rows_read, self.rows_returned + 1, "{name}: {self:?}");
            assert!(
                !self.nodes.iter().any(|node| node.contains("Sort")),
                "{name}: {self:?}"
            );
        }
    }
}

/// Counts of rows are whole numbers as long as a node runs once, which every node here does.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Runs and explains `text` as the store's connections do, with a plan made for these values and with the plan that
/// a prepared statement gets after a while.
async fn explain(connection: &mut PgConnection, text: &str, types: &str, values: &str) -> [Did; 2] {
    let mut done = Vec::new();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let setup =
            format!("BEGIN; SET LOCAL plan_cache_mode = {mode}; PREPARE q ({types}) AS {text}");
        sqlx::raw_sql(AssertSqlSafe(setup))
            .execute(&mut *connection)
            .await
            .unwrap();
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE q ({values})");
        let plan: Value = sqlx::query_scalar(AssertSqlSafe(explain))
            .persistent(false)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        sqlx::raw_sql("ROLLBACK; DEALLOCATE q")
            .execute(&mut *connection)
            .await
            .unwrap();
        done.push(Did::of(&plan));
    }
    done.try_into().unwrap()
}

#[tokio::test]
async fn hot_queries_read_what_they_return_at_a_million_events() {
    let database = Database::migrated().await;
    let mut connection = database.connection().await;
    fill(&mut connection).await;
    let counts: (i64, i64) =
        sqlx::query_as("SELECT (SELECT COUNT(*) FROM agent_execution_events), (SELECT COUNT(*) FROM conversations)")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!(counts, (1_000_000, i64::from(CONVERSATIONS)));

    // The store's own connection, with its settings.
    let store = PostgresStore::connect(&database.url, PostgresOptions::default())
        .await
        .unwrap();
    let mut connection = store.pool().acquire().await.unwrap();
    let execution = "text, text, bigint";
    let events = "text, bigint, bigint, text, text";
    let queued = "text, text, text, text, timestamptz, bigint, text, bigint";
    // (name, text, types, values, rows read at the most)
    let queries = [
        (
            "page of events",
            hot::EVENTS,
            events,
            "'c5000', 40, 21, 't', NULL",
            22,
        ),
        (
            "page of a whole conversation",
            hot::EVENTS,
            events,
            "'c5000', 1, 1001, 't', NULL",
            91,
        ),
        (
            "last page of events",
            hot::EVENTS,
            events,
            "'c5000', 85, 101, 't', 'o'",
            7,
        ),
        (
            "page of a very long conversation",
            hot::EVENTS,
            events,
            "'c1', 1000, 101, 't', NULL",
            102,
        ),
        (
            "lock, last sequence",
            hot::LOCK_CONVERSATION.postgres,
            "text",
            "'c5000'",
            1,
        ),
        (
            "lock for a caller",
            hot::LOCK_VISIBLE_CONVERSATION.postgres,
            "text, text, text",
            "'c5000', 't', 'o'",
            1,
        ),
        (
            "last sequences",
            hot::LAST_SEQUENCES.postgres,
            "text[]",
            "'{c1,c77,c5000,unknown}'",
            3,
        ),
        (
            "is the batch stored",
            hot::SAVE_STATE,
            "text, text, text",
            "'e1c5000', 'c5000', md5('5000/7')",
            2,
        ),
        (
            "append: counter",
            hot::ADVANCE_CONVERSATION,
            "text, bigint, bigint, timestamptz",
            "'c5000', 95, 0, now()",
            1,
        ),
        (
            "latest checkpoint",
            hot::CHECKPOINT,
            "text, bigint, text",
            "'e1c5000', 2, 'llm_complete'",
            1,
        ),
        (
            "claim of a step",
            hot::CLAIM_STEP,
            execution,
            "'e1c5000', 'c5000', 3",
            1,
        ),
        (
            "claim of a stored step",
            hot::CLAIM_STEP,
            execution,
            "'e1c5000', 'c5000', 2",
            2,
        ),
        (
            "context",
            hot::CONTEXT,
            "text, bigint, text",
            "'c5000', 3, ''",
            3,
        ),
        (
            "who delegates",
            hot::DELEGATOR,
            "text, text",
            "'e1c5000', 'c5000'",
            6,
        ),
        (
            "tree of executions",
            hot::EXECUTIONS,
            "text, text, text, timestamptz, text, bigint",
            "'c5000', 't', NULL, '1970-01-01', '', 101",
            20,
        ),
        (
            "status",
            hot::CONVERSATION_STATUS,
            "text, text, text",
            "'c5000', 't', NULL",
            2,
        ),
        (
            "turns that have begun",
            hot::BEGUN_TURNS,
            "text, text",
            "'e2c5000', 'c5000'",
            4,
        ),
        (
            "resume point",
            hot::RESUME_POINT,
            "text, text, text, bigint",
            "'c5000', 't', NULL, 100",
            7,
        ),
        (
            "open tools",
            hot::OPEN_TOOLS.postgres,
            "text",
            "'e1c5000'",
            1,
        ),
        (
            "calls that wait for someone",
            hot::WAITING_TOOLS,
            "text, text, text, bigint",
            "'c5000', 't', NULL, 100",
            2,
        ),
        (
            "slice of a result",
            hot::TOOL_RESULT.postgres,
            "text, text, text, bigint, bigint, text",
            "'c5000', 'exec_1', 't', 10, 100, NULL",
            2,
        ),
        (
            "slice of a result, for the model",
            hot::TOOL_RESULT_OF_THREAD.postgres,
            "text, text, text, bigint, bigint",
            "'c5000', 'exec_1', NULL, 10, 100",
            2,
        ),
        (
            "repeated message",
            hot::QUEUED_MESSAGE,
            "text, text, text, text",
            "'c5000', 'm2', 'client3', 'x'",
            4,
        ),
        (
            "accepted message, far over the limit of turns",
            hot::QUEUE_MESSAGE,
            queued,
            "'c', 'm', NULL, 'x', now(), 9, 't', 20",
            20,
        ),
        (
            "list of conversations",
            hot::CONVERSATIONS_BEFORE,
            "text, bigint, timestamptz, text",
            "'t', 20, now() + interval '1 h', 'c3600'",
            20,
        ),
        (
            "list of conversations to search in",
            hot::CONVERSATIONS_BEFORE,
            "text, bigint, timestamptz, text",
            &format!("'t', {MAX_SCANNED} + 1, now() + interval '1 h', 'c3600'"),
            u64::from(MAX_SCANNED) + 1,
        ),
        (
            "list of one owner's conversations",
            hot::OWN_CONVERSATIONS_BEFORE,
            "text, text, bigint, timestamptz, text",
            "'t', 'o', 20, now() + interval '1 h', 'c3600'",
            20,
        ),
    ];
    // A table that has just grown has no statistics, or old ones.
    for has_statistics in [false, true] {
        if has_statistics {
            sqlx::raw_sql("ANALYZE")
                .execute(&mut *connection)
                .await
                .unwrap();
        }
        for (name, text, types, values, most_rows) in queries {
            for did in explain(&mut connection, text, types, values).await {
                println!("{name}: {did:?}");
                did.check(name, most_rows);
            }
        }
    }

    let append = format!(
        "{} VALUES ($1 || '1', 'c5000', 'm1', 'thought', 91, 'k', now(), '{{}}'), \
         ($1 || '2', 'c5000', 'm1', 'act', 92, 'k', now(), '{{}}')",
        hot::INSERT_EVENTS
    );
    for did in explain(&mut connection, &append, "text", "'new'").await {
        println!("append: {did:?}");
        assert!(did.pages <= 60, "two rows in three indexes: {did:?}");
    }
}
