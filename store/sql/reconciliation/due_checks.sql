-- Selects the checks that are due, the oldest first, and the state of their conversations. Sub-selects instead of joins
-- ask the conversations, so that PostgreSQL looks up keys with any statistics.
-- Index: turn_checks_due, key of conversations, agent_executions_running, messages_queued, key of messages
-- Index: key of execution_checkpoints, tool_execution_records_open, key of approval_answers
--
-- :now timestamp
-- :stalled_since timestamp
-- :idle_since timestamp
-- :reject text  The word for messages that no running workflow takes.
-- :pending text  The word for calls that wait for an approval.
-- :type_llm_complete text
-- :row_limit bigint
SELECT
    t.conversation_id, t.due_at,
    -- False: the check has no reason any more.
    COALESCE(
        (SELECT c.updated_at FROM conversations c WHERE c.id = t.conversation_id) <= :stalled_since
        AND (SELECT e.id FROM running_turns e
             WHERE e.conversation_id = t.conversation_id
             ORDER BY e.started_at
             LIMIT 1) IS NOT NULL,
        FALSE
    )
    OR (SELECT m.id FROM messages m
        WHERE m.conversation_id = t.conversation_id AND m.status = 'queued' AND m.created_at <= :stalled_since
        ORDER BY m.created_at, m.id
        LIMIT 1) IS NOT NULL AS has_stalled,
    -- A message waits that a running workflow may not know.
    (SELECT m.id FROM messages m
     WHERE m.conversation_id = t.conversation_id AND m.status = 'queued' AND m.created_at <= :stalled_since
         AND m.on_busy <> :reject AND (t.signalled_until IS NULL OR m.created_at > t.signalled_until)
     ORDER BY m.created_at, m.id
     LIMIT 1) IS NOT NULL
    -- The running turn was cancelled, and its workflow may not know.
    OR (SELECT m.cancel_reason FROM messages m
        WHERE m.conversation_id = t.conversation_id
            AND m.id = (SELECT r.message_id FROM running_turns r
                        WHERE r.conversation_id = t.conversation_id
                        ORDER BY r.started_at DESC
                        LIMIT 1)) IS NOT NULL AS has_unsignalled,
    -- No LLM call and no tool is at work for a while, and no person is asked: the workflow has to act.
    CASE WHEN (SELECT c.updated_at FROM conversations c WHERE c.id = t.conversation_id) <= :idle_since THEN
        (SELECT e.id FROM agent_executions e
         WHERE e.conversation_id = t.conversation_id AND e.status = 'running'
             AND (
                 (e.called_step >= 0
                  AND (SELECT k.id FROM execution_checkpoints k
                       WHERE k.agent_execution_id = e.id AND k.step_number = e.called_step
                           AND k.checkpoint_type = :type_llm_complete AND k.execution_id = '') IS NULL)
                 OR (SELECT o.execution_id FROM tool_execution_records o
                     WHERE o.agent_execution_id = e.id AND o.observed_sequence IS NULL AND o.finished_at IS NULL
                         -- A call whose approval is answered waits for the workflow.
                         AND (o.approval <> :pending
                              OR (SELECT a.answer_id FROM approval_answers a
                                  WHERE a.conversation_id = o.conversation_id AND a.execution_id = o.execution_id
                                  ORDER BY a.answer_id
                                  LIMIT 1) IS NULL)
                     ORDER BY o.step, o.call_index
                     LIMIT 1) IS NOT NULL
             )
         ORDER BY e.started_at
         LIMIT 1) IS NULL
        ELSE FALSE
    END AS is_idle
FROM turn_checks t
WHERE t.due_at <= :now
ORDER BY t.due_at, t.conversation_id
LIMIT :row_limit
