-- Takes the turn to look for stalled conversations. The statement changes the row for only one of the gateways that ask
-- at the same time. The returned text is the conversation after which the walk goes on; empty at the beginning.
-- Index: key of reconciler
--
-- :now timestamp
-- :asked_before timestamp
UPDATE reconciler
SET asked_at = :now
WHERE asked_at <= :asked_before
RETURNING walked_to
