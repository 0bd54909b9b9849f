-- Removes the check of a conversation whose turn ends, unless another turn runs or a message waits. The statement reads
-- no row of the end itself, because the end may be a part of the same statement. The end of a sub-agent finds a running
-- turn.
-- Index: key of turn_checks, agent_executions_running, messages_queued
--
-- :conversation_id text
-- :agent_execution_id text
DELETE FROM turn_checks
WHERE conversation_id = :conversation_id
    AND (SELECT e.id FROM running_turns e
         WHERE e.conversation_id = :conversation_id AND e.id <> :agent_execution_id
         ORDER BY e.started_at
         LIMIT 1) IS NULL
    AND (SELECT m.id FROM messages m
         WHERE m.conversation_id = :conversation_id AND m.status = 'queued'
         ORDER BY m.created_at, m.id
         LIMIT 1) IS NULL
