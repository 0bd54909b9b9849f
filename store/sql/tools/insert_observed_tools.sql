-- Inserts records of tool executions that have ended and are observed. The statement also ends and observes existing
-- records. An existing record keeps its events and its full result.
-- Index: key of tool_execution_records
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
    full_result
)
VALUES (:conversation_id, :execution_id, :message_id, :agent_execution_id, :step, :call_index, :call_id,
    :tool_name, :effect, :timeout_ms, :status, :is_error, :duration_ms, :observed_sequence, :created_at,
    :finished_at, :kind, :approval, :input_hash, :definition_hash, :approval_rule,
    :title_template, :expires_at, :signatures,
    :tool_input, :events, :result, :full_result)
ON CONFLICT (conversation_id, execution_id) DO UPDATE
SET status = excluded.status, is_error = excluded.is_error, duration_ms = excluded.duration_ms,
    observed_sequence = excluded.observed_sequence, result = excluded.result, approval = excluded.approval,
    finished_at = COALESCE(tool_execution_records.finished_at, excluded.finished_at), question = NULL
