-- Replaces the calls of an assistant's message, after a person has edited the input of a call.
-- Index: key of messages
--
-- :conversation_id text
-- :message_id text
-- :tool_calls json
UPDATE messages
SET tool_calls = :tool_calls
WHERE conversation_id = :conversation_id AND id = :message_id
