-- Selects the objects that are due to be removed.
-- Index: removed_objects_due
--
-- :now timestamp
-- :row_limit bigint
SELECT object_key
FROM removed_objects
WHERE remove_after <= :now
ORDER BY remove_after
LIMIT :row_limit
