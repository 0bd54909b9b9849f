-- Inserts the reply of a step, unless the step has a reply, or the conversation has one of the call ids. An obsolete
-- call inserts nothing: its agent execution has ended, a newer call was claimed, or a newer run owns the conversation
-- (invariant 11, one run). The clause `ON CONFLICT` names no key, as in `insert_checkpoint.sql`.
-- Index: key of tool_execution_records, key of execution_checkpoints, key of agent_executions, key of conversations
--
-- :checkpoint_id text
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
-- :checkpoint_type text
-- :execution_id text  Empty: a reply belongs to no tool execution.
-- :step bigint
-- :generation bigint  The generation of the call; 0 for a step of hooks.
-- :input_tokens bigint
-- :output_tokens bigint
-- :now timestamp
-- :execution_state json
-- :cached_tokens bigint
-- :cache_write_tokens bigint
-- :reasoning_tokens bigint
-- :cost_nano bigint?
-- :estimated_calls bigint
-- :call_ids text[]  The ids of the reply's calls.
-- :status_running text
-- :run_epoch bigint  The epoch of the caller's run.
INSERT INTO execution_checkpoints (
    id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number, generation,
    input_tokens, output_tokens, created_at, execution_state, cached_tokens, cache_write_tokens, reasoning_tokens,
    cost_nano, estimated_calls
)
SELECT
    :checkpoint_id, :conversation_id, :message_id, :agent_execution_id, :checkpoint_type, :execution_id, :step,
    :generation, :input_tokens, :output_tokens, :now, :execution_state, :cached_tokens, :cache_write_tokens,
    :reasoning_tokens, :cost_nano, :estimated_calls
WHERE EXISTS (
    SELECT 1 FROM agent_executions e JOIN conversations c ON c.id = e.conversation_id
    WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id AND e.status = :status_running
        AND c.run_epoch <= :run_epoch AND (:generation = 0 OR e.generation <= :generation)
)
AND NOT EXISTS (
    SELECT 1 FROM tool_execution_records
    WHERE conversation_id = :conversation_id AND call_id IN (:call_ids)
)
ON CONFLICT DO NOTHING
