-- Replaces a checkpoint, unless the stored checkpoint has a newer generation.
-- Index: key of execution_checkpoints
--
-- :checkpoint_id text
-- :generation bigint  The generation of a model call, or the attempt of a tool.
-- :input_tokens bigint
-- :output_tokens bigint
-- :now timestamp
-- :execution_state json
UPDATE execution_checkpoints
SET generation = :generation, input_tokens = :input_tokens, output_tokens = :output_tokens, created_at = :now,
    execution_state = :execution_state
WHERE id = :checkpoint_id AND generation <= :generation
