-- Starts a tool if the tool may run, and returns the record and the person for whom the tool runs (invariant 6, done
-- once). A tool may run when its approval lets it run, when the newest run asks, and when the tool has not started, or
-- has started without an end and has an effect that may be repeated. A claimant that asks again lost the first answer
-- and ran no tool, so the claimant may run the tool, and the attempt is unchanged.
-- Index: key of tool_execution_records, key of conversations, key of agent_executions
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
    title_template, signatures,
    tool_input, question, events, result,
    (SELECT depth FROM agent_executions WHERE id = :agent_execution_id) AS depth,
    (SELECT agent FROM agent_executions WHERE id = :agent_execution_id) AS agent,
    (SELECT agent_hash FROM agent_executions WHERE id = :agent_execution_id) AS agent_hash,
    (SELECT tenant_id FROM conversations WHERE id = :conversation_id) AS tenant_id,
    (SELECT log_id FROM conversations WHERE id = :conversation_id) AS log_id,
    (SELECT NULLIF(owner_id, '') FROM conversations WHERE id = :conversation_id) AS owner_id
