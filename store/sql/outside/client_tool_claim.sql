-- Selects the end of a waiting call's claim.
-- Index: key of client_tool_claims, key of tool_execution_records, key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :execution_id text
SELECT expires_at
FROM client_tool_claims
WHERE execution_id = :execution_id AND conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM tool_execution_records
        WHERE conversation_id = :conversation_id
            AND EXISTS (
                SELECT 1 FROM conversations
                WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
                    AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
            )
            AND execution_id = :execution_id AND kind = 'client' AND status = 'pending'
    )
