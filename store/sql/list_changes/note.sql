-- Adds a change to the lists with a conversation: to a slot of the list of the tenant, and to the list of the owner. A
-- hidden conversation is in no list. The order of the rows is the order of the locks.
-- Index: key of conversations, key of list_changes
--
-- :conversation_id text
-- :slot bigint
-- :first_version bigint
INSERT INTO list_changes (tenant_id, owner_id, slot, version)
SELECT tenant_id, '', :slot, :first_version FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
UNION ALL
SELECT tenant_id, owner_id, 0, :first_version FROM conversations
WHERE id = :conversation_id AND owner_id <> ''
ON CONFLICT (tenant_id, owner_id, slot) DO UPDATE
SET version = list_changes.version + 1
