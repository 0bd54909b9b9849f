-- Adds a change to the lists with conversations that leave the lists, and returns the changed lists. The rows of the
-- conversations must still exist. The order of the rows is the order of the locks.
-- Index: key of conversations, key of list_changes
--
-- :conversation_ids text[]
-- :slot bigint
-- :first_version bigint
INSERT INTO list_changes (tenant_id, owner_id, slot, version)
SELECT DISTINCT tenant_id, '', CAST(:slot AS BIGINT), CAST(:first_version AS BIGINT) FROM conversations
WHERE id IN (:conversation_ids) AND tenant_id <> ''
UNION ALL
SELECT DISTINCT tenant_id, owner_id, 0, CAST(:first_version AS BIGINT) FROM conversations
WHERE id IN (:conversation_ids) AND owner_id <> ''
ORDER BY 1, 2, 3
ON CONFLICT (tenant_id, owner_id, slot) DO UPDATE
SET version = list_changes.version + 1
RETURNING tenant_id, owner_id
