-- Selects the texts of messages. A retry has the text of the message that began the retried turn.
-- Index: key of messages
--
-- :conversation_id text
-- :message_ids text[]
SELECT
    id,
    CASE WHEN role = 'retry' THEN COALESCE((
        SELECT o.content FROM messages o
        WHERE o.conversation_id = messages.conversation_id AND o.id = messages.content
    ), '') ELSE content END AS content
FROM messages
WHERE conversation_id = :conversation_id AND id IN (:message_ids)
