-- Notes the end of a walk with the beginning and the limits of `schedule_checks.sql`: the next walk goes on after the
-- noted conversation. A walk that has reached the last conversation begins anew.
-- Index: agent_executions_running, messages_queued, key of reconciler
--
-- :after text  The walk began after this conversation.
-- :walk_limit bigint
-- :last_of_walk bigint  The conversation with this number, counted from 0, is the last of a walk.
UPDATE reconciler
SET walked_to = COALESCE((
    SELECT walked.conversation_id
    FROM (
        SELECT running.conversation_id
        FROM (
            SELECT conversation_id FROM running_turns
            WHERE conversation_id > :after
            ORDER BY conversation_id
            LIMIT :walk_limit
        ) AS running
        UNION
        SELECT waiting.conversation_id
        FROM (
            SELECT DISTINCT conversation_id FROM messages
            WHERE status = 'queued' AND conversation_id > :after
            ORDER BY conversation_id
            LIMIT :walk_limit
        ) AS waiting
    ) AS walked
    ORDER BY walked.conversation_id
    LIMIT 1 OFFSET :last_of_walk
), '')
