-- Notes the cancel of a message that waits, or that began the running turn. The first reason stays. The statement
-- changes no other message.
-- Index: key of messages, agent_executions_running
--
-- :conversation_id text
-- :message_id text
-- :reason text
UPDATE messages
SET cancel_reason = COALESCE(cancel_reason, :reason)
WHERE conversation_id = :conversation_id AND id = :message_id AND role IN ('user', 'retry')
    AND (status = 'queued' OR EXISTS (
        SELECT 1 FROM running_turns
        WHERE running_turns.conversation_id = :conversation_id AND running_turns.message_id = :message_id
    ))
RETURNING status = 'queued' AS is_waiting
