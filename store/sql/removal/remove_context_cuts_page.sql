-- Removes a page of the cuts of the context of a hidden conversation.
-- Index: key of context_cuts
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM context_cuts
WHERE conversation_id = :conversation_id AND (thread, through_sequence) IN (
    SELECT thread, through_sequence FROM context_cuts
    WHERE conversation_id = :conversation_id
    ORDER BY thread, through_sequence
    LIMIT :row_limit
)
