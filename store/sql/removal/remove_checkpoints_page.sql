-- Removes a page of the checkpoints of a hidden conversation.
-- Index: key of execution_checkpoints, execution_checkpoints_by_message
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM execution_checkpoints
WHERE conversation_id = :conversation_id AND id IN (
    SELECT id FROM execution_checkpoints
    WHERE conversation_id = :conversation_id
    ORDER BY message_id, step_number
    LIMIT :row_limit
)
