-- Inserts an uploaded blob without a conversation. The statement inserts no row for a used key, or when the tenant's
-- blobs without a conversation would exceed the limit.
-- Index: blobs_unattached, key of blobs, blobs_by_upload
--
-- :blob_id text
-- :tenant_id text
-- :owner text  The owner, or empty.
-- :upload_key text?  The client's key.
-- :media_type text
-- :file_name text
-- :bytes bigint
-- :sha256 text
-- :object_key text?
-- :content bytes?
-- :now timestamp
-- :max_unattached bigint  The tenant's limit for the bytes of blobs without a conversation.
INSERT INTO blobs (
    id, tenant_id, owner_id, upload_key, media_type, file_name, bytes, sha256, object_key, content, created_at
)
SELECT
    :blob_id, :tenant_id, :owner, :upload_key, :media_type, :file_name, :bytes, :sha256, :object_key, :content, :now
WHERE (
    SELECT COALESCE(SUM(bytes), 0) FROM blobs
    WHERE tenant_id = :tenant_id AND conversation_id IS NULL
) + :bytes <= :max_unattached
ON CONFLICT DO NOTHING
