-- Notes the objects of blobs that the transaction removes.
-- Index: key of blobs, key of removed_objects
--
-- :blob_ids text[]
INSERT INTO removed_objects (object_key, remove_after)
SELECT object_key, created_at
FROM blobs
WHERE object_key IS NOT NULL AND id IN (:blob_ids)
ON CONFLICT DO NOTHING
