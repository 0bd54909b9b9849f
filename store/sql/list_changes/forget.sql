-- Removes the version of an owner's list when the owner has no conversation.
-- Index: key of list_changes, conversations_by_owner
--
-- :tenant_id text
-- :owner text
DELETE FROM list_changes
WHERE tenant_id = :tenant_id AND owner_id = :owner AND slot = 0
    AND (SELECT c.id FROM conversations c
         WHERE c.tenant_id = :tenant_id AND c.owner_id = :owner
         ORDER BY c.active_at DESC, c.id DESC
         LIMIT 1) IS NULL
