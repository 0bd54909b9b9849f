-- Selects the stored message with the client's id or with the id of a retry. If both ids match a row, the statement
-- returns the row with the client's id. The row also has the turn that took the message, and the turn's status.
-- Index: key of messages, key of agent_executions
--
-- :conversation_id text
-- :message_id text
-- :client_message_id text?
SELECT
    found.id,
    found.role = 'retry' AS has_this_content,
    e.message_id AS turn_message_id,
    e.status AS turn_status,
    FALSE AS has_others
FROM (
    SELECT 0 AS rank, id, role, agent_execution_id FROM messages
    WHERE conversation_id = :conversation_id AND client_message_id = :client_message_id
    UNION ALL
    SELECT 1 AS rank, id, role, agent_execution_id FROM messages
    WHERE conversation_id = :conversation_id AND id = :message_id
) AS found
LEFT JOIN agent_executions e ON e.id = found.agent_execution_id
ORDER BY found.rank
LIMIT 1
