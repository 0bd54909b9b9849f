-- Removes the sums of tool calls of every tenant from before a day.
-- Index: none: the key begins with the tenant, and the removal is about every tenant
--
-- :before_day text
DELETE FROM tool_usage_days
WHERE day < :before_day
