-- Gives a waiting call to a client, and returns the number of clients that have begun the call. The statement returns
-- no row when another client has the claim, or when the call no longer waits.
-- Index: key of tool_execution_records, key of conversations, key of client_tool_claims
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
-- :execution_id text
-- :claimant text
-- :expires_at timestamp  The end of the claim.
-- :now timestamp
INSERT INTO client_tool_claims (conversation_id, execution_id, claimant, claims, expires_at)
SELECT conversation_id, execution_id, :claimant, 1, CLOCK(:expires_at, :now)
FROM tool_execution_records
WHERE conversation_id = :conversation_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND execution_id = :execution_id AND kind = 'client' AND status = 'pending'
ON CONFLICT (conversation_id, execution_id) DO UPDATE
SET claimant = excluded.claimant, expires_at = excluded.expires_at,
    claims = client_tool_claims.claims
        + CASE WHEN client_tool_claims.claimant = excluded.claimant THEN 0 ELSE 1 END
WHERE client_tool_claims.claimant = excluded.claimant OR client_tool_claims.expires_at <= CLOCK(:now)
RETURNING CAST(claims AS BIGINT)
