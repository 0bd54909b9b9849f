-- Removes a page of the work plans of a hidden conversation.
-- Index: key of work_plans
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM work_plans
WHERE conversation_id = :conversation_id AND id IN (
    SELECT id FROM work_plans
    WHERE conversation_id = :conversation_id
    ORDER BY id
    LIMIT :row_limit
)
