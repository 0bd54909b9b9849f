-- Removes the trace contexts of conversations.
-- Index: key of trace_contexts
--
-- :conversation_ids text[]
DELETE FROM trace_contexts
WHERE conversation_id IN (:conversation_ids)
