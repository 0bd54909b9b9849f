-- Counts the other conversations of the conversation's owner with a running turn or a waiting message. The count looks
-- at the tenant's conversations: at most 10,000 with a waiting message and 10,000 with a running turn. The owner is a
-- sub-select instead of a join, so that PostgreSQL looks up the owner by key regardless of the plan.
-- Index: key of conversations, messages_queued_of_tenant, agent_executions_running_of_tenant
--
-- :conversation_id text
-- :tenant_id text
SELECT (
    SELECT COUNT(*) FROM (
        SELECT conversation_id FROM (
            SELECT DISTINCT conversation_id FROM messages
            WHERE tenant_id = :tenant_id AND status = 'queued'
            ORDER BY conversation_id
            LIMIT 10000
        ) AS waiting_of_all
        UNION
        SELECT conversation_id FROM (
            SELECT conversation_id FROM running_turns
            WHERE tenant_id = :tenant_id
            ORDER BY conversation_id
            LIMIT 10000
        ) AS running_of_all
    ) AS busy_of_all
    WHERE busy_of_all.conversation_id <> :conversation_id
        AND (SELECT b.owner_id FROM conversations b WHERE b.id = busy_of_all.conversation_id)
            = (SELECT owner_id FROM conversations WHERE id = :conversation_id)
)
