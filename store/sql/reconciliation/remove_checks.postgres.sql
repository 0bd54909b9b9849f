-- Removes checks without a reason: a turn ended, a message was taken, or a conversation was removed. The statement
-- reads the list as `set_due.postgres.sql` does.
-- Index: key of turn_checks
--
-- :conversation_ids text[]
DELETE FROM turn_checks
WHERE conversation_id = ANY(ARRAY(
    SELECT listed.id
    FROM (VALUES (:conversation_ids)) AS given (ids)
    CROSS JOIN LATERAL unnest(given.ids) AS listed (id)
))
