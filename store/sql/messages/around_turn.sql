-- Selects the reason of a message's cancel, and the message of another running turn of the conversation. A turn that
-- was terminated from outside may still have the status running: the newest turn counts.
-- Index: key of messages, agent_executions_running
--
-- :conversation_id text
-- :message_id text
SELECT
    (SELECT cancel_reason FROM messages
     WHERE conversation_id = :conversation_id AND id = :message_id) AS cancel_reason,
    (SELECT message_id FROM running_turns
     WHERE conversation_id = :conversation_id AND message_id <> :message_id
     ORDER BY started_at DESC
     LIMIT 1) AS running_message
