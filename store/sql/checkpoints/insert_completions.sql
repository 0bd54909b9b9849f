-- Inserts the checkpoints `tool_complete` of ended tool executions, each with a `ToolCompleteState`. The first row
-- wins. The clause `ON CONFLICT` names no key, as in `insert_checkpoint.sql`.
-- Index: key of execution_checkpoints
-- rows: many
--
-- :checkpoint_id text
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
-- :checkpoint_type text
-- :execution_id text
-- :step bigint
-- :generation bigint  The attempt of the tool.
-- :input_tokens bigint
-- :output_tokens bigint
-- :now timestamp
-- :execution_state json
INSERT INTO execution_checkpoints (
    id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number, generation,
    input_tokens, output_tokens, created_at, execution_state
)
VALUES (:checkpoint_id, :conversation_id, :message_id, :agent_execution_id, :checkpoint_type, :execution_id, :step,
    :generation, :input_tokens, :output_tokens, :now, :execution_state)
ON CONFLICT DO NOTHING
