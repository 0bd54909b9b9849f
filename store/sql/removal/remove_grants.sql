-- Removes the approvals that count for a whole conversation.
-- Index: key of tool_grants
--
-- :conversation_ids text[]
DELETE FROM tool_grants
WHERE conversation_id IN (:conversation_ids)
