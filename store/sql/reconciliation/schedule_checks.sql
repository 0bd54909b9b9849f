-- Schedules a check of each conversation of a walk that has stalled: a turn makes no progress, or a message waits too
-- long. A walk reads the conversations with a running turn and with a waiting message, in the order of their ids.
-- Sub-selects instead of joins ask the conversations, so that PostgreSQL looks up keys with any statistics. A join with
-- wrong statistics reads whole tables again and again.
-- Index: agent_executions_running, messages_queued, key of conversations, key of turn_checks
--
-- :after text  The walk begins after this conversation.
-- :now timestamp
-- :stalled_since timestamp
-- :walk_limit bigint  The most conversations of each kind in the walk.
-- :row_limit bigint  The most new checks.
INSERT INTO turn_checks (conversation_id, due_at)
SELECT stalled.conversation_id, :now
FROM (
    SELECT running.conversation_id
    FROM (
        SELECT conversation_id FROM running_turns
        WHERE conversation_id > :after
        ORDER BY conversation_id
        LIMIT :walk_limit
    ) AS running
    WHERE (SELECT c.updated_at FROM conversations c WHERE c.id = running.conversation_id) <= :stalled_since
    UNION
    SELECT waiting.conversation_id
    FROM (
        SELECT DISTINCT conversation_id FROM messages
        WHERE status = 'queued' AND conversation_id > :after
        ORDER BY conversation_id
        LIMIT :walk_limit
    ) AS waiting
    WHERE (
            SELECT m.created_at FROM messages m
            WHERE m.conversation_id = waiting.conversation_id AND m.status = 'queued'
            ORDER BY m.created_at, m.id
            LIMIT 1
        ) <= :stalled_since
) AS stalled
WHERE (SELECT t.due_at FROM turn_checks t WHERE t.conversation_id = stalled.conversation_id) IS NULL
LIMIT :row_limit
ON CONFLICT DO NOTHING
