-- Selects work plans.
-- Index: key of work_plans
--
-- :conversation_id text
-- :plan_ids text[]
SELECT id, title, steps
FROM work_plans
WHERE conversation_id = :conversation_id AND id IN (:plan_ids)
