-- Selects the checks that are due, the oldest first.
-- Index: turn_checks_due
--
-- :now timestamp
-- :row_limit bigint
SELECT conversation_id, due_at
FROM turn_checks
WHERE due_at <= :now
ORDER BY due_at, conversation_id
LIMIT :row_limit
