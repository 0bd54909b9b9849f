-- Takes the turn to ask for due checks. The statement changes the row for only one of the gateways that ask at the same
-- time.
-- Index: key of reconciler
--
-- :now timestamp
-- :asked_before timestamp
UPDATE reconciler
SET asked_at = :now
WHERE asked_at <= :asked_before
RETURNING id
