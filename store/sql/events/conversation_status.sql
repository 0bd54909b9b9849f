-- Selects the log of a conversation, its last sequence number, its newest running turn with the turn's chosen model,
-- and its first waiting message.
-- Index: key of conversations, key of messages, agent_executions_running, messages_queued
--
-- :conversation_id text
-- :tenant_id text
-- :owner_id text?
SELECT
    log_id,
    c.last_sequence,
    (SELECT e.message_id FROM running_turns e
     WHERE e.conversation_id = c.id
     ORDER BY e.started_at DESC
     LIMIT 1) AS running_message_id,
    (SELECT m.model FROM running_turns e
     JOIN messages m ON m.conversation_id = e.conversation_id AND m.id = e.message_id
     WHERE e.conversation_id = c.id
     ORDER BY e.started_at DESC
     LIMIT 1) AS running_model,
    (SELECT m.id FROM messages m
     WHERE m.conversation_id = c.id AND m.status = 'queued'
     ORDER BY m.created_at, m.id
     LIMIT 1) AS queued_message_id
FROM conversations c
WHERE c.id = :conversation_id AND tenant_id = :tenant_id
    AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
