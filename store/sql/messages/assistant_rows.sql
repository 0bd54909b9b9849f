-- Selects the assistant's messages with the given ids.
-- Index: key of messages
--
-- :conversation_id text
-- :message_ids text[]
SELECT id, step, content, tool_calls, sequence_number
FROM messages
WHERE conversation_id = :conversation_id AND role = 'assistant' AND id IN (:message_ids)
