-- Selects the running turn of a conversation, the step of its last reply, and why the turn was cancelled. The engine
-- runs one turn at a time. A turn that was terminated from outside may still have the status running: the newest turn
-- counts.
-- Index: agent_executions_running, key of execution_checkpoints, key of messages
--
-- :conversation_id text
SELECT
    r.message_id,
    (SELECT MAX(k.step_number) FROM execution_checkpoints k
     WHERE k.agent_execution_id = r.id AND k.checkpoint_type = 'llm_complete') AS checkpoint_step,
    (SELECT m.cancel_reason FROM messages m
     WHERE m.conversation_id = r.conversation_id AND m.id = r.message_id) AS cancel_reason
FROM running_turns r
WHERE r.conversation_id = :conversation_id
ORDER BY r.started_at DESC
LIMIT 1
