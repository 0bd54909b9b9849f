-- Removes the work plans of conversations.
-- Index: key of work_plans
--
-- :conversation_ids text[]
DELETE FROM work_plans
WHERE conversation_id IN (:conversation_ids)
