-- Locks old blobs without a conversation. The statement skips a blob that a concurrent message attaches.
-- Index: blobs_unattached
--
-- :before timestamp
-- :tenant_id text?  Without a tenant: the blobs of every tenant.
-- :row_limit bigint
SELECT id
FROM blobs
WHERE conversation_id IS NULL AND created_at < :before
    AND (CAST(:tenant_id AS TEXT) IS NULL OR tenant_id = :tenant_id)
ORDER BY created_at
LIMIT :row_limit
FOR UPDATE SKIP LOCKED
