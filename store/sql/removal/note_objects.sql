-- Notes the objects of the conversations' blobs. A later call removes the objects from the object store.
-- Index: blobs_by_conversation
--
-- :conversation_ids text[]
INSERT INTO removed_objects (object_key, remove_after)
SELECT object_key, created_at
FROM blobs
WHERE object_key IS NOT NULL AND conversation_id IN (:conversation_ids)
ON CONFLICT DO NOTHING
