//! A database with a million events.

use sqlx::PgConnection;

/// Inserts 1,000,000 events in 10,000 conversations: 90 in each, and 100,090 in one that hardly shows in the
/// statistics. They lie in the table in the order in which they came in, so those of one conversation are far from each
/// other.
pub(super) async fn fill(connection: &mut PgConnection) {
    let fill = "
        -- No foreign keys while this is loaded, and no statistics.
        SET session_replication_role = replica;
        ALTER TABLE agent_execution_events SET (autovacuum_enabled = off);
        INSERT INTO agent_definitions SELECT 'h' || n, '{}' FROM generate_series(1, 1000) n;
        INSERT INTO agent_definitions VALUES ('h', '{}');
        INSERT INTO conversations (id, tenant_id, owner_id, agent, title, last_sequence, created_at, updated_at, active_at, log_id)
            SELECT 'c' || n, 't', CASE n % 100 WHEN 0 THEN 'o' ELSE 'p' END, 'a', '', CASE n WHEN 1 THEN 100090 ELSE 90 END,
                now(), now() + n * interval '1 s', now() + n * interval '1 s', 'log' || n
            FROM generate_series(1, 10000) n;
        INSERT INTO messages SELECT id, 'm' || k, 'user', 'taken', 'client' || k, 'e' || k || id, NULL, k, '2026-01-01 00:00:00+00', '', '[]', '[]', tenant_id
            FROM conversations, generate_series(1, 5) k;
        INSERT INTO context_cuts SELECT id, '', n, 'e1' || id, n, 'Short.', ARRAY['m1'], now()
            FROM conversations, generate_series(1, 2) n WHERE id <> 'c5000';
        INSERT INTO agent_executions (id, conversation_id, message_id, root_execution_id, depth, agent, agent_hash,
            status, started_at, tenant_id)
            SELECT 'e' || k || id, id, 'm' || k, 'e' || k || id, 0, 'a', 'h',
                CASE k WHEN 1 THEN 'running' ELSE 'completed' END, now(), tenant_id
            FROM conversations, generate_series(1, 5) k;
        INSERT INTO conversation_budgets (conversation_id, turn_id, tenant_id)
            SELECT id, 'e1' || id, tenant_id FROM conversations;
        INSERT INTO execution_checkpoints (id, conversation_id, message_id, agent_execution_id, checkpoint_type,
            step_number, created_at, execution_state, execution_id, generation, input_tokens, output_tokens)
            SELECT id || '/' || k, id, 'm1', 'e1' || id, 'llm_complete', k, now(), '{}', '', 1, 2, 3
            FROM conversations, generate_series(0, 2) k;
        INSERT INTO tool_execution_records (conversation_id, execution_id, message_id, agent_execution_id, step,
            call_index, call_id, tool_name, effect, timeout_ms, status, observed_sequence, created_at, signatures,
            tool_input, events, result, is_error, duration_ms, kind, approval, input_hash, definition_hash, approval_rule,
            title_template)
            SELECT id, 'exec_' || k, 'm1', 'e1' || id, 0, k, 'call_' || k, 'tool', 'read', 1,
                CASE k WHEN 3 THEN 'running' ELSE 'completed' END, CASE k WHEN 3 THEN NULL ELSE k END, now(), '[]', '{}', '[]', '1',
                FALSE, 0, '', '', '', '', '{}', ''
            FROM conversations, generate_series(1, 3) k;
        INSERT INTO agent_execution_events
            SELECT md5(c || '/' || n), 'c' || c, 'm1', 'observe', n, 'm1/x/0/observe', now(), '{\"content\": \"text\"}', 19
            FROM generate_series(1, 90) n, generate_series(1, 10000) c;
        INSERT INTO agent_execution_events
            SELECT md5('1/' || n), 'c1', 'm1', 'observe', n, 'm1/x/0/observe', now(), '{\"content\": \"text\"}', 19
            FROM generate_series(91, 100090) n;
        INSERT INTO approval_answers SELECT id, 'exec_1', 'answer', 'a person', now(), 1, '{}', TRUE FROM conversations;
        INSERT INTO turn_checks (conversation_id, due_at)
            SELECT 'c' || n, now() + (n - 200) * interval '1 s' FROM generate_series(1, 10000) n;
        -- The lists of 10,000 owners, and of a tenant with all its slots.
        INSERT INTO list_changes SELECT 't', 'owner' || n, 0, n FROM generate_series(1, 10000) n;
        INSERT INTO list_changes SELECT 't', '', n, 1 FROM generate_series(0, 15) n;
        SET session_replication_role = DEFAULT";
    sqlx::raw_sql(fill).execute(connection).await.unwrap();
}

/// Returns the number of rows that the statements above made: events, conversations.
pub(super) async fn counts(connection: &mut PgConnection) -> (i64, i64) {
    let text = "SELECT (SELECT COUNT(*) FROM agent_execution_events), (SELECT COUNT(*) FROM conversations)";
    sqlx::query_as(text).fetch_one(connection).await.unwrap()
}
