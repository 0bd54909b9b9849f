-- Selects the blob that an owner uploaded with a key.
-- Index: blobs_by_upload
--
-- :upload_key text  The client's key.
-- :tenant_id text
-- :owner text  The owner, or empty.
SELECT id, media_type, file_name, bytes, sha256
FROM blobs
WHERE upload_key = :upload_key AND tenant_id = :tenant_id AND owner_id = :owner
