-- Inserts records of tool executions. A call that waits for an approval gets into the inbox of its tenant.
-- Index: key of tool_execution_records, key of conversations
-- rows: many
--
-- :conversation_id text
-- :execution_id text
-- :message_id text
-- :agent_execution_id text
-- :step bigint
-- :call_index bigint
-- :call_id text
-- :tool_name text
-- :effect text
-- :timeout_ms bigint
-- :status text
-- :is_error boolean
-- :duration_ms bigint
-- :observed_sequence bigint?
-- :created_at timestamp
-- :finished_at timestamp?
-- :kind text
-- :approval text
-- :input_hash text
-- :definition_hash text
-- :approval_rule json
-- :title_template text
-- :expires_at timestamp?
-- :signatures json
-- :tool_input json
-- :events json
-- :result json?
-- :full_result json?
INSERT INTO tool_execution_records (
    conversation_id, execution_id, message_id, agent_execution_id, step, call_index, call_id, tool_name,
    effect, timeout_ms, status, is_error, duration_ms, observed_sequence, created_at, finished_at, kind,
    approval, input_hash, definition_hash, approval_rule,
    title_template, expires_at, signatures, tool_input, events, result,
    full_result, inbox_tenant_id
)
VALUES (:conversation_id, :execution_id, :message_id, :agent_execution_id, :step, :call_index, :call_id,
    :tool_name, :effect, :timeout_ms, :status, :is_error, :duration_ms, :observed_sequence, :created_at,
    :finished_at, :kind, :approval, :input_hash, :definition_hash, :approval_rule,
    :title_template, :expires_at, :signatures,
    :tool_input, :events, :result, :full_result,
    CASE :approval WHEN 'pending' THEN (SELECT tenant_id FROM conversations WHERE id = :conversation_id) ELSE '' END)
