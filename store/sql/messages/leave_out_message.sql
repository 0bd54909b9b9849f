-- Leaves a message that was cancelled while it waited out of the conversation's context: the row moves to a thread of
-- its own.
-- Index: key of messages
--
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
UPDATE messages
SET thread = :agent_execution_id
WHERE conversation_id = :conversation_id AND id = :message_id
