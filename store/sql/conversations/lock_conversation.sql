-- Locks a conversation until the transaction ends. The lock makes the writers of a conversation wait for one another
-- (invariant 2, one order). A conversation with an empty tenant is hidden: its rows are being removed.
-- Index: key of conversations
--
-- :conversation_id text
SELECT log_id, tenant_id, last_sequence, run_epoch, granted_epoch
FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
FOR UPDATE
