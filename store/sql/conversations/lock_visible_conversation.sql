-- Locks a conversation like `lock_conversation.sql`, if the caller may see the conversation.
-- Index: key of conversations
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
SELECT last_sequence
FROM conversations
WHERE id = :conversation_id AND tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
FOR UPDATE
