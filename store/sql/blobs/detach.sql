-- Detaches blobs from a conversation, if no message of the conversation refers to them.
-- Index: key of blobs, blobs_by_conversation, key of messages
--
-- :conversation_id text
-- :blob_ids text[]
UPDATE blobs
SET conversation_id = NULL
WHERE conversation_id = :conversation_id
    AND NOT EXISTS (
        SELECT 1 FROM messages m
        WHERE m.conversation_id = :conversation_id AND CAST(m.attachments AS TEXT) LIKE '%' || blobs.id || '%'
    )
    AND id IN (:blob_ids)
