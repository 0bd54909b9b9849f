-- Notes a deleted conversation, so that a late request does not make the conversation anew.
-- Index: key of deleted_conversations
--
-- :conversation_id text
-- :now timestamp
INSERT INTO deleted_conversations (id, deleted_at)
VALUES (:conversation_id, :now)
ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at
