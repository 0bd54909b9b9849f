-- Removes blobs.
-- Index: key of blobs
--
-- :blob_ids text[]
DELETE FROM blobs
WHERE id IN (:blob_ids)
