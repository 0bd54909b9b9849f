-- Ends an unfinished tool execution, and returns its record. The first end wins. The statement also writes the
-- checkpoint `tool_complete`, with a `ToolCompleteState`.
-- Index: key of tool_execution_records, key of execution_checkpoints
--
-- :status text
-- :is_error boolean
-- :duration_ms bigint
-- :now timestamp
-- :events json
-- :result json
-- :full_result json?
-- :conversation_id text
-- :execution_id text
-- :agent_execution_id text
-- :open_statuses text[]
-- :checkpoint_id text
-- :message_id text
-- :checkpoint_type text
-- :execution_state json
WITH finished AS (
    UPDATE tool_execution_records
    SET status = :status, is_error = :is_error, duration_ms = :duration_ms, finished_at = :now, events = :events,
        result = :result, full_result = :full_result, question = NULL
    WHERE conversation_id = :conversation_id AND execution_id = :execution_id
        AND agent_execution_id = :agent_execution_id AND status IN (:open_statuses)
    RETURNING
        execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error,
        duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
        title_template, signatures, tool_input, events, result, full_result
), checkpoint AS (
    INSERT INTO execution_checkpoints (
        id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number,
        generation, input_tokens, output_tokens, created_at, execution_state
    )
    SELECT
        :checkpoint_id, :conversation_id, :message_id, :agent_execution_id, :checkpoint_type, execution_id, step,
        attempt, 0, 0, :now, :execution_state
    FROM finished
    ON CONFLICT DO NOTHING
)
SELECT * FROM finished
