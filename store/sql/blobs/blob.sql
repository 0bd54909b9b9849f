-- Selects a blob that the caller may see, with its bytes or its object.
-- Index: key of blobs
--
-- :blob_id text
-- :tenant_id text
-- :owner_id text?
SELECT id, media_type, file_name, bytes, sha256, object_key, content
FROM blobs
WHERE id = :blob_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
