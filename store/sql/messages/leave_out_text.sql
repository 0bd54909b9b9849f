-- Leaves the text of a failed step out of the conversation's context: the row moves to a thread of its own. The tool
-- calls of a step stay.
-- Index: key of messages
--
-- :conversation_id text
-- :message_id text
-- :agent_execution_id text
UPDATE messages
SET thread = :agent_execution_id
WHERE conversation_id = :conversation_id AND id = :message_id AND role = 'assistant'
    AND CAST(tool_calls AS TEXT) = '[]'
