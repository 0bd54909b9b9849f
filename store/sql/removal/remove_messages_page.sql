-- Removes a page of the messages of a hidden conversation.
-- Index: key of messages
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM messages
WHERE conversation_id = :conversation_id AND id IN (
    SELECT id FROM messages
    WHERE conversation_id = :conversation_id
    ORDER BY id
    LIMIT :row_limit
)
