-- Removes the sums of every tenant from before a day.
-- Index: none: the key begins with the tenant, and the removal is about every tenant
--
-- :before_day text
DELETE FROM usage_days
WHERE day < :before_day
