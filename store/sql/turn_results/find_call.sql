-- Selects the message that a call over MCP has sent, by the client's id of the message.
-- Index: messages_of_mcp, key of conversations
--
-- :tenant_id text
-- :owner_id text?
-- :client_message_id text
SELECT m.conversation_id, m.id AS message_id, m.created_at, TRUE AS is_visible
FROM messages m
WHERE m.tenant_id = :tenant_id AND m.client_message_id = :client_message_id
    AND substr(m.client_message_id, 1, 4) = 'mcp_'
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = m.conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
ORDER BY m.created_at
LIMIT 1
