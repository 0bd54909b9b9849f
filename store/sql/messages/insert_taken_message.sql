-- Inserts a message that enters the timeline.
-- Index: key of conversations
--
-- :conversation_id text
-- :message_id text
-- :role text
-- :agent_execution_id text
-- :step bigint?  The step that wrote an assistant's message.
-- :sequence_number bigint
-- :now timestamp
-- :thread text  The sub-agent that owns the message's thread, or empty for the conversation's own thread.
-- :content text
-- :tool_calls json
INSERT INTO messages (
    conversation_id, id, tenant_id, role, status, agent_execution_id, step, sequence_number, created_at,
    thread, content, tool_calls, tool_results
)
VALUES (
    :conversation_id, :message_id, (SELECT tenant_id FROM conversations WHERE id = :conversation_id), :role, 'taken',
    :agent_execution_id, :step, :sequence_number, :now, :thread, :content, :tool_calls, '[]'
)
