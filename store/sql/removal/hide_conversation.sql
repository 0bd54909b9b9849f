-- Hides a conversation whose rows are removed in several transactions. An empty tenant is nobody's, so no caller sees
-- the conversation. The epoch is larger than that of every run, so every claim and every save counts as obsolete
-- (invariant 11, one run). The row keeps the id until every other row of the conversation is gone.
-- Index: key of conversations
--
-- :conversation_id text
UPDATE conversations
SET tenant_id = '', owner_id = '', run_epoch = 9223372036854775807
WHERE id = :conversation_id
