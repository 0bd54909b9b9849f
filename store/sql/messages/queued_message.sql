-- Selects the stored message with one of a new message's two ids. If both ids match a row, the statement returns the
-- row with the client's id. The row also has the turn that took the message, the turn's status, and whether another
-- turn or message of the conversation is unfinished.
-- Index: key of messages, key of agent_executions, messages_queued, agent_executions_running
--
-- :conversation_id text
-- :message_id text
-- :client_message_id text?
-- :content text
-- :reject text  The word for messages that do not wait.
-- :attachments json
-- :chosen_model text?  The model that the new message names itself.
SELECT
    found.id,
    found.content = :content AND CAST(found.attachments AS TEXT) = CAST(:attachments AS TEXT)
        AND (CAST(:chosen_model AS TEXT) IS NULL OR found.model = :chosen_model) AS has_this_content,
    e.message_id AS turn_message_id,
    e.status AS turn_status,
    -- The newest turn with the status running, or another waiting message.
    (SELECT e.id FROM running_turns e
     WHERE e.conversation_id = :conversation_id
     ORDER BY e.started_at DESC
     LIMIT 1) IS NOT NULL
    OR EXISTS (
        SELECT 1 FROM messages o
        WHERE o.conversation_id = :conversation_id AND o.status = 'queued' AND o.on_busy <> :reject
            AND o.id <> found.id
    ) AS has_others
FROM (
    SELECT 0 AS rank, id, content, attachments, model, agent_execution_id FROM messages
    WHERE conversation_id = :conversation_id AND client_message_id = :client_message_id
    UNION ALL
    SELECT 1 AS rank, id, content, attachments, model, agent_execution_id FROM messages
    WHERE conversation_id = :conversation_id AND id = :message_id
) AS found
LEFT JOIN agent_executions e ON e.id = found.agent_execution_id
ORDER BY found.rank
LIMIT 1
