-- Selects messages that calls over MCP have sent, the newest first. The rows have the messages of every owner, so that
-- the statement reads a bounded number of rows; `is_visible` says whether the caller may see a message.
-- Index: messages_of_mcp_by_age, key of conversations
--
-- :tenant_id text
-- :owner_id text?
-- :before timestamp
-- :before_id text
-- :row_limit bigint
SELECT
    m.conversation_id, m.id AS message_id, m.created_at,
    EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = m.conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    ) AS is_visible
FROM messages m
WHERE m.tenant_id = :tenant_id AND substr(m.client_message_id, 1, 4) = 'mcp_'
    AND (m.created_at, m.id) < (:before, :before_id)
ORDER BY m.created_at DESC, m.id DESC
LIMIT :row_limit
