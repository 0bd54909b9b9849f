-- Inserts a waiting message. The statement inserts no row when the caller may not see the conversation, when the
-- message exists already or when a limit is reached. The returned row tells whether another turn or message of the
-- conversation is unfinished.
-- Index: key of conversations, messages_queued, messages_queued_of_tenant, agent_executions_running
-- Index: agent_executions_running_of_tenant
--
-- :conversation_id text
-- :message_id text
-- :client_message_id text?
-- :content text
-- :now timestamp
-- :max_queued bigint  The most waiting messages of the conversation.
-- :tenant_id text
-- :max_turns bigint  The most other conversations of the tenant with a running turn or a waiting message. 0: no limit.
-- :on_busy text  The behaviour while a turn is running.
-- :reject text  The word for messages that do not wait.
-- :owner_id text?
-- :attachments json
-- :max_turns_of_owner bigint  Like `max_turns`, for the conversations of the conversation's owner.
-- :sent_by text?
-- :model text?  The chosen model of the message's turn.
-- :role text
INSERT INTO messages (
    conversation_id, id, tenant_id, role, status, client_message_id, created_at, on_busy, content, tool_calls,
    tool_results, attachments, sent_by, model
)
SELECT
    :conversation_id, :message_id, :tenant_id, :role, 'queued', :client_message_id, :now, :on_busy, :content,
    '[]', '[]', :attachments, :sent_by, :model
WHERE EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND (SELECT COUNT(*) FROM messages WHERE conversation_id = :conversation_id AND status = 'queued') < :max_queued
    -- The limit of the tenant. The statement looks at no more than `max_turns` conversations of each kind.
    AND (:max_turns = 0 OR (
        SELECT COUNT(*) FROM (
            SELECT conversation_id FROM (
                SELECT DISTINCT conversation_id FROM messages
                WHERE tenant_id = :tenant_id AND status = 'queued' AND conversation_id <> :conversation_id
                ORDER BY conversation_id
                LIMIT :max_turns
            ) AS waiting
            UNION
            SELECT conversation_id FROM (
                SELECT DISTINCT conversation_id FROM running_turns
                WHERE tenant_id = :tenant_id AND conversation_id <> :conversation_id
                ORDER BY conversation_id
                LIMIT :max_turns
            ) AS running
        ) AS busy
    ) < :max_turns)
    -- The limit of the owner. The count looks at the tenant's conversations: at most 10,000 with a waiting message and
    -- 10,000 with a running turn. The owner is a sub-select instead of a join, so that PostgreSQL looks up the owner by
    -- key regardless of the plan.
    AND (:max_turns_of_owner = 0 OR (
        SELECT COUNT(*) FROM (
            SELECT conversation_id FROM (
                SELECT DISTINCT conversation_id FROM messages
                WHERE tenant_id = :tenant_id AND status = 'queued'
                ORDER BY conversation_id
                LIMIT 10000
            ) AS waiting_of_all
            UNION
            SELECT conversation_id FROM (
                -- Without DISTINCT, because a conversation has one running turn, and the planner then reads the index.
                SELECT conversation_id FROM running_turns
                WHERE tenant_id = :tenant_id
                ORDER BY conversation_id
                LIMIT 10000
            ) AS running_of_all
        ) AS busy_of_all
        WHERE busy_of_all.conversation_id <> :conversation_id
            AND (SELECT b.owner_id FROM conversations b WHERE b.id = busy_of_all.conversation_id)
                = (SELECT owner_id FROM conversations WHERE id = :conversation_id)
    ) < :max_turns_of_owner)
ON CONFLICT DO NOTHING
RETURNING
    -- The newest turn with the status running, or another waiting message.
    (SELECT e.id FROM running_turns e
     WHERE e.conversation_id = :conversation_id
     ORDER BY e.started_at DESC
     LIMIT 1) IS NOT NULL
    OR EXISTS (
        SELECT 1 FROM messages o
        WHERE o.conversation_id = :conversation_id AND o.status = 'queued' AND o.on_busy <> :reject
            AND o.id <> :message_id
    ) AS has_others
