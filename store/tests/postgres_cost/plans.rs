//! Checks the plans of the hot queries at 1,000,000 events: they read hardly more rows than they return.

use everturn_store::{MAX_SCANNED, PostgresOptions, PostgresStore, hot};

use crate::{
    explained::explain,
    failures::explain_failures,
    filled::{counts, fill},
    support::postgres::Database,
};

/// Rows and look-ups for each row of a list: itself, the turn that runs in it, a message that waits, and the calls that wait
/// for a person and for the client.
const LISTED: u64 = 5;

/// A text with the types and values of its parameters.
pub(crate) struct Query {
    name: &'static str,
    text: &'static str,
    types: &'static str,
    values: String,
    /// The most rows that the query may read.
    most_rows: u64,
}

pub(crate) fn query(
    name: &'static str,
    text: &'static str,
    types: &'static str,
    values: &str,
    most_rows: u64,
) -> Query {
    Query {
        name,
        text,
        types,
        values: values.to_owned(),
        most_rows,
    }
}

#[tokio::test]
async fn hot_queries_read_what_they_return_at_a_million_events() {
    let database = Database::migrated().await;
    let mut connection = database.connection().await;
    fill(&mut connection).await;
    assert_eq!(counts(&mut connection).await, (1_000_000, 10_000));

    // This is the store's own connection, with its settings.
    let store = PostgresStore::connect(&database.url, PostgresOptions::default())
        .await
        .unwrap();
    let mut connection = store.pool().acquire().await.unwrap();
    let subjects = [
        of_events(),
        of_turns(),
        of_batches(),
        of_reconciliation(),
        of_tools(),
        crate::waiting::of_waiting(),
        of_messages(),
        of_conversations(),
        of_lists(),
    ];
    let queries: Vec<Query> = subjects.into_iter().flatten().collect();
    // A table that has just grown has no statistics, or old ones, so both cases are checked.
    for has_statistics in [false, true] {
        if has_statistics {
            sqlx::raw_sql("ANALYZE")
                .execute(&mut *connection)
                .await
                .unwrap();
        }
        for query in &queries {
            for did in explain(&mut connection, query.text, query.types, &query.values).await {
                println!("{}: {did:?}", query.name);
                did.check(query.name, query.most_rows);
            }
        }
        crate::waiting::explain_looks(&mut connection).await;
    }

    explain_turns_of_a_tenant(&mut connection).await;
    explain_failures(&mut connection).await;

    // A long turn saves many replies.
    let long = "INSERT INTO execution_checkpoints (id, conversation_id, message_id, agent_execution_id, \
                checkpoint_type, step_number, created_at, execution_state, execution_id, generation, input_tokens, output_tokens) \
                SELECT 'l' || k, 'c5000', 'm1', 'e1c5000', 'llm_complete', k, now(), '{}', '', 1, 2, 3 FROM generate_series(3, 5000) k";
    sqlx::raw_sql(long).execute(&mut *connection).await.unwrap();
    for query in &of_batches()[..1] {
        for did in explain(&mut connection, query.text, query.types, &query.values).await {
            println!("{}, after 5000 steps: {did:?}", query.name);
            did.check(query.name, query.most_rows);
        }
    }

    let append = "INSERT INTO agent_execution_events (id, conversation_id, message_id, event_type, sequence_number, \
                  batch_key, created_at, data_bytes, event_data) \
                  VALUES ($1 || '1', 'c5000', 'm1', 'thought', 91, 'k', now(), 2, '{}'), \
                  ($1 || '2', 'c5000', 'm1', 'act', 92, 'k', now(), 2, '{}')";
    for did in explain(&mut connection, append, "text", "'new'").await {
        println!("append: {did:?}");
        assert!(did.pages <= 60, "two rows in three indexes: {did:?}");
    }
}

/// A turn runs in each of the 10,000 conversations of the tenant.
async fn explain_turns_of_a_tenant(connection: &mut sqlx::PgConnection) {
    // The owner of each turn is looked up.
    let of_owner = hot::postgres("messages/count_turns_of_owner");
    for did in explain(connection, of_owner, "text, text", "'c5000', 't'").await {
        println!("turns of an owner: {did:?}");
        did.check_indexes("turns of an owner");
    }
    // In the same way, each running turn is asked for a waiting call.
    let waiting = hot::postgres("conversations/waiting_conversations");
    let types = "text, text, timestamptz, text, bigint";
    for did in explain(connection, waiting, types, "'t', NULL, NULL, '', 20").await {
        println!("conversations that wait: {did:?}");
        did.check_indexes("conversations that wait");
    }
}

fn of_events() -> Vec<Query> {
    let types = "text, text, text, bigint, bigint, text, bigint";
    // Each event twice, and beside the events the conversation and the agent execution that runs.
    let page = |name, values, events: u64| {
        let most_rows = 2 * events + 2;
        query(
            name,
            hot::postgres("events/events"),
            types,
            values,
            most_rows,
        )
    };
    let text = "text, text, text";
    vec![
        page(
            "page of events",
            "'c5000', 't', NULL, 40, 21, 'log5000', 4194304",
            21,
        ),
        page(
            "page of a whole conversation",
            "'c5000', 't', NULL, 1, 1001, 'log5000', 4194304",
            90,
        ),
        page(
            "last page of events",
            "'c5000', 't', 'o', 85, 101, 'log5000', 4194304",
            6,
        ),
        page(
            "page of a very long conversation",
            "'c1', 't', NULL, 1000, 101, 'log1', 4194304",
            101,
        ),
        query(
            "newest page of a very long conversation, backwards",
            hot::postgres("events/events_before"),
            types,
            "'c1', 't', NULL, 4294967295, 101, 'log1', 4194304",
            2 * 101 + 1,
        ),
        query(
            "page of a very long conversation, backwards",
            hot::postgres("events/events_before"),
            types,
            "'c1', 't', NULL, 1000, 101, 'log1', 4194304",
            2 * 101 + 1,
        ),
        query(
            "last sequences",
            hot::postgres("events/last_sequences"),
            "text[]",
            "'{c1,c77,c5000,unknown}'",
            3,
        ),
        query(
            "status",
            hot::postgres("events/conversation_status"),
            text,
            "'c5000', 't', NULL",
            4,
        ),
    ]
}

fn of_turns() -> Vec<Query> {
    let step = "text, text, bigint, text, text, bigint, text";
    vec![
        query(
            "is the batch stored",
            hot::postgres("agent_executions/save_state"),
            "text, text, text",
            "'e1c5000', 'c5000', md5('5000/7')",
            2,
        ),
        query(
            "latest checkpoint",
            hot::postgres("checkpoints/checkpoint"),
            "text, bigint, text",
            "'e1c5000', 2, 'llm_complete'",
            1,
        ),
        // The agent execution, and its conversation for the log.
        query(
            "claim of a step",
            hot::postgres("checkpoints/claim_step"),
            step,
            "'e1c5000', 'c5000', 3, 'running', 'llm_complete', 0, 'w'",
            // The checkpoint, the log, tenant, owner and metadata of the conversation, the epoch of its run, the budget, and
            // the turn's message. Five look-ups in the index of conversations read more pages than rows.
            11,
        ),
        query(
            "claim of a stored step",
            hot::postgres("checkpoints/claim_step"),
            step,
            "'e1c5000', 'c5000', 2, 'running', 'llm_complete', 0, 'w'",
            3,
        ),
        query(
            "who delegates",
            hot::postgres("agent_executions/delegator"),
            "text, text",
            "'e1c5000', 'c5000'",
            6,
        ),
        query(
            "tree of agent executions",
            hot::postgres("agent_executions/agent_executions"),
            "text, text, text, timestamptz, text, bigint",
            "'c5000', 't', NULL, '1970-01-01', '', 101",
            20,
        ),
        query(
            "turns that have begun",
            hot::postgres("agent_executions/begun_turns"),
            "text, text",
            "'e2c5000', 'c5000'",
            4,
        ),
        query(
            "resume point",
            hot::postgres("messages/resume_point"),
            "text, text, text, bigint, text, text",
            "'c5000', 't', NULL, 100, 'reject', 'interrupt'",
            7,
        ),
    ]
}

/// What the batches of a turn are built from.
fn of_batches() -> Vec<Query> {
    let step = "'c5000', 'e1c5000', 'm1', 'running', 0, md5('new')";
    vec![
        query(
            "a reply to save",
            hot::postgres("as_read/reply"),
            "text, text, text, text, bigint, text, bigint, text, boolean",
            &format!("{step}, 2, 'llm_complete', false"),
            3,
        ),
        query(
            "an answer to save, with the sums of three calls, of an agent execution with an open tool",
            hot::postgres("as_read/reply"),
            "text, text, text, text, bigint, text, bigint, text, boolean",
            &format!("{step}, 2, 'llm_complete', true"),
            8,
        ),
        query(
            "the sums of an end",
            hot::postgres("checkpoints/totals"),
            "text, text",
            "'e1c5000', 'llm_complete'",
            10,
        ),
        query(
            "a tool to observe",
            hot::postgres("as_read/ended_tool"),
            "text, text, text, text, bigint, text, text, text, text[]",
            &format!("{step}, 'exec_3', 'm1', '{{pending}}'"),
            4,
        ),
        query(
            "a message to begin with",
            hot::postgres("as_read/waiting_message"),
            "text, text, text",
            "'c5000', 'new', 'e9c5000'",
            3,
        ),
    ]
}

fn of_reconciliation() -> Vec<Query> {
    vec![
        query(
            "a turn that has not ended",
            hot::postgres("reconciliation/unfinished_turn"),
            "text",
            "'c5000'",
            5,
        ),
        query(
            "messages that wait",
            hot::postgres("reconciliation/waiting_messages"),
            "text, bigint",
            "'c5000', 100",
            1,
        ),
    ]
}

fn of_tools() -> Vec<Query> {
    vec![
        query(
            "open tools",
            hot::postgres("tools/open_tools"),
            "text",
            "'e1c5000'",
            1,
        ),
        query(
            "recorded calls of a step",
            hot::postgres("tools/recorded"),
            "text, text[]",
            "'c5000', '{exec_1,exec_2,exec_3}'",
            3,
        ),
        query(
            "results of a step",
            hot::postgres("messages/set_tool_results"),
            "text, text, text[], text[]",
            "'c5000', 'm2', '{exec_1,exec_2,exec_3}', '{}'",
            4,
        ),
        query(
            "claim of a tool",
            hot::postgres("tools/start_tool"),
            "text, text, text, timestamptz, text, text[], text[], text, text, bigint, text, text, bigint, text",
            "'c5000', 'exec_3', 'e1c5000', now(), 'x', '{\"\",approved}', '{read,idempotent}', \
             'pending', 'running', 0, 'start', 'm1', 0, 'tool_start'",
            // The rows are the record, its agent execution, and the conversation for the epoch and for whom the tool runs.
            4,
        ),
        query(
            "slice of a result",
            hot::postgres("tool_results/tool_result"),
            "text, text, text, text, bigint, bigint",
            "'c5000', 't', NULL, 'exec_1', 10, 100",
            2,
        ),
        query(
            "slice of a result, for the model",
            hot::postgres("tool_results/tool_result_of_thread"),
            "text, text, text, bigint, bigint",
            "'c5000', NULL, 'exec_1', 10, 100",
            2,
        ),
    ]
}

fn of_messages() -> Vec<Query> {
    vec![
        query(
            "context",
            hot::postgres("context/context"),
            "text, bigint, text, bigint, bigint, bigint, timestamptz, bigint",
            "'c5000', 3, '', 4194304, -1, -1, NULL, 0",
            3,
        ),
        // The newest cut is looked up more than once.
        query(
            "context after a cut",
            hot::postgres("context/context"),
            "text, bigint, text, bigint, bigint, bigint, timestamptz, bigint",
            "'c5001', 3, '', 4194304, -1, -1, NULL, 0",
            6 + 1 + 3,
        ),
        // The last message that was read is looked up for each part.
        query(
            "context that was read before",
            hot::postgres("context/context"),
            "text, bigint, text, bigint, bigint, bigint, timestamptz, bigint",
            "'c5000', 3, '', 4194304, 0, 4, '2026-01-01 00:00:00+00', 0",
            3 + 1,
        ),
        query(
            "repeated message",
            hot::postgres("messages/queued_message"),
            "text, text, text, text, text, json, text",
            "'c5000', 'm2', 'client3', 'x', 'reject', '[]', NULL",
            5,
        ),
        query(
            "accepted message, far over the limit of turns",
            hot::postgres("messages/queue_message"),
            "text, text, text, text, timestamptz, bigint, text, bigint, text, text, text, json, bigint, text, text, \
             text, bigint, bigint",
            "'c', 'm', NULL, 'x', now(), 9, 't', 20, 'queue', 'reject', NULL, '[]', 0, NULL, NULL, 'user', 3, 1",
            20,
        ),
    ]
}

fn of_conversations() -> Vec<Query> {
    let (page, own_page) = (
        "text, bigint, timestamptz, text",
        "text, text, bigint, timestamptz, text",
    );
    let before = "now() + interval '1 h', 'c3600'";
    vec![
        query(
            "lock, last sequence",
            hot::postgres("conversations/lock_conversation"),
            "text",
            "'c5000'",
            1,
        ),
        query(
            "lock for a caller",
            hot::postgres("conversations/lock_visible_conversation"),
            "text, text, text",
            "'c5000', 't', 'o'",
            1,
        ),
        query(
            "append: counter",
            hot::postgres("conversations/advance_conversation"),
            "text, bigint, bigint, timestamptz, boolean, text, bigint, bigint, bigint, bigint, bigint, bigint, bigint, \
             bigint, bigint, bigint",
            "'c5000', 95, 0, now(), FALSE, '', 1, 1, 1, 1, 1, NULL, 0, 0, 0, 0",
            1,
        ),
        query(
            "list of conversations",
            hot::postgres("conversations/conversations_before"),
            page,
            &format!("'t', 20, {before}"),
            LISTED * 20,
        ),
        query(
            "list of conversations to search in",
            hot::postgres("conversations/conversations_before"),
            page,
            &format!("'t', {MAX_SCANNED} + 1, {before}"),
            LISTED * (u64::from(MAX_SCANNED) + 1),
        ),
        query(
            "a shown conversation",
            hot::postgres("conversations/shown_conversation"),
            "text, text, text, text",
            "'c5000', 't', 'o', 'llm_complete'",
            LISTED + 1 + 3,
        ),
        query(
            "list of one owner's conversations",
            hot::postgres("conversations/own_conversations_before"),
            own_page,
            &format!("'t', 'o', 20, {before}"),
            LISTED * 20,
        ),
    ]
}

fn of_lists() -> Vec<Query> {
    vec![
        // A tenant's list has 16 rows, and an owner's list a single row.
        query(
            "versions of lists",
            hot::postgres("list_changes/list_versions"),
            "text",
            r#"'[["t", null], ["t", "owner1"], ["t", "owner2"], ["nobody", null]]'"#,
            18,
        ),
        // The conversation is looked up for the list of the tenant and for the list of the owner.
        query(
            "a change of lists",
            hot::postgres("list_changes/note"),
            "text, bigint, bigint",
            "'c5000', 3, 1",
            2,
        ),
    ]
}
