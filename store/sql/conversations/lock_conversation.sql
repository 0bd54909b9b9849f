-- Locks a conversation until the transaction ends. The lock makes the writers of a conversation wait for one another
-- (invariant 2, one order).
-- Index: key of conversations
--
-- :conversation_id text
SELECT log_id, tenant_id, last_sequence, run_epoch, granted_epoch
FROM conversations
WHERE id = :conversation_id
FOR UPDATE
