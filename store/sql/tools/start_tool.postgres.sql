-- Starts a tool if the tool may run, and returns the record and the person for whom the tool runs (invariant 6, done
-- once). A tool may run when its approval lets it run, when the newest run asks, and when the tool has not started, or
-- has started without an end and has an effect that may be repeated. A claimant that asks again lost the first answer
-- and ran no tool, so the claimant may run the tool, and the attempt is unchanged. The statement also writes the
-- checkpoint `tool_start`, with a `ToolStartState`. The writer of the checkpoint holds the record's lock, so `ON
-- CONFLICT` may name one of the two keys of `execution_checkpoints`.
-- Index: key of tool_execution_records, key of conversations, key of agent_executions, key of execution_checkpoints
--
-- :conversation_id text
-- :execution_id text
-- :agent_execution_id text
-- :now timestamp
-- :claimant text
-- :runnable_approvals text[]  The approvals that let a tool run.
-- :repeatable_effects text[]  The effects with which a tool may run again.
-- :pending text  The status pending.
-- :running text  The status running.
-- :epoch bigint  The epoch of the run that asks.
-- :checkpoint_id text
-- :message_id text
-- :step bigint
-- :checkpoint_type text
WITH started AS (
    UPDATE tool_execution_records
    SET status = :running, claimant = :claimant,
        attempt = attempt + CASE WHEN claimant = :claimant THEN 0 ELSE 1 END,
        started_at = COALESCE(started_at, :now)
    WHERE conversation_id = :conversation_id AND execution_id = :execution_id
        AND agent_execution_id = :agent_execution_id
        -- True unless a run with a larger epoch owns the conversation. The condition reads the conversation without the
        -- lock, as of the statement's start, because a claim in the database by then counts as earlier.
        AND (SELECT run_epoch FROM conversations WHERE conversations.id = :conversation_id) <= :epoch
        AND approval IN (:runnable_approvals)
        AND (
            status = :pending
            OR (status = :running AND (effect IN (:repeatable_effects) OR claimant = :claimant))
        )
    RETURNING
        execution_id, step, call_index, call_id, tool_name, effect, timeout_ms, status, attempt, is_error,
        duration_ms, observed_sequence, kind, approval, input_hash, definition_hash, approval_rule,
        title_template, signatures, tool_input, question, events, result
), checkpoint AS (
    INSERT INTO execution_checkpoints (
        id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number,
        generation, input_tokens, output_tokens, created_at, execution_state
    )
    SELECT
        :checkpoint_id, :conversation_id, :message_id, :agent_execution_id, :checkpoint_type, execution_id, :step,
        attempt, 0, 0, :now,
        json_build_object(
            'execution_id', execution_id, 'tool_name', tool_name, 'tool_input', tool_input, 'attempt', attempt
        )
    FROM started
    ON CONFLICT (id) DO UPDATE
    SET generation = excluded.generation, created_at = excluded.created_at,
        execution_state = excluded.execution_state
)
SELECT started.*, e.depth, e.agent, e.agent_hash, c.tenant_id, c.log_id, NULLIF(c.owner_id, '') AS owner_id
FROM started
JOIN agent_executions e ON e.id = :agent_execution_id
JOIN conversations c ON c.id = :conversation_id
