-- Schedules a check of every conversation with a turn that made no progress, or with a message that waits too long. The
-- conditions `running` and `queued` repeat the conditions of partial indexes.
-- Index: agent_executions_running, messages_queued, key of conversations, key of turn_checks
--
-- :now timestamp
-- :stalled_since timestamp
-- :row_limit bigint
INSERT INTO turn_checks (conversation_id, due_at)
SELECT stalled.conversation_id, :now
FROM (
    SELECT e.conversation_id
    FROM running_turns e
    JOIN conversations c ON c.id = e.conversation_id
    WHERE c.updated_at <= :stalled_since
    UNION
    SELECT m.conversation_id
    FROM messages m
    WHERE m.status = 'queued' AND m.created_at <= :stalled_since
) AS stalled
WHERE NOT EXISTS (SELECT 1 FROM turn_checks t WHERE t.conversation_id = stalled.conversation_id)
LIMIT :row_limit
ON CONFLICT DO NOTHING
