-- Forgets old notes of deleted conversations. The statement skips notes that another transaction removes.
-- Index: deleted_conversations_by_age
--
-- :before timestamp
-- :row_limit bigint
DELETE FROM deleted_conversations
WHERE id IN (
    SELECT id FROM deleted_conversations
    WHERE deleted_at < :before
    ORDER BY deleted_at
    LIMIT :row_limit
    FOR UPDATE SKIP LOCKED
)
