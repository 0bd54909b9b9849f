-- Inserts a checkpoint. The first row wins. The clause `ON CONFLICT` names no key. With a named key, PostgreSQL would
-- wait for a concurrent writer only at that key, and would report a conflict at the table's second key.
-- Index: key of execution_checkpoints
--
-- :checkpoint_id text
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
-- :checkpoint_type text
-- :execution_id text  The tool execution of a tool's checkpoint, or empty.
-- :step bigint
-- :generation bigint  The generation of a model call, or the attempt of a tool.
-- :input_tokens bigint
-- :output_tokens bigint
-- :now timestamp
-- :execution_state json
INSERT INTO execution_checkpoints (
    id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number, generation,
    input_tokens, output_tokens, created_at, execution_state
)
VALUES (
    :checkpoint_id, :conversation_id, :message_id, :agent_execution_id, :checkpoint_type, :execution_id, :step,
    :generation, :input_tokens, :output_tokens, :now, :execution_state
)
ON CONFLICT DO NOTHING
