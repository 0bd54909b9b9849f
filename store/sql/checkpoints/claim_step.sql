-- Claims the model call of a step. A single statement claims, so that a finished call is never paid again and a
-- generation is never given twice (invariant 5, paid once). The statement changes no row when the agent execution is
-- not running, when a newer run owns the conversation, when the step has a reply, or when the turn's message was
-- cancelled. The row says whether an earlier
-- step is not saved with all its tools (`is_ahead`), whether an earlier call has a reservation (`has_reserved`) or no
-- known end (`has_open_call`), and which response and which position in the model chain were noted last.
-- Index: key of agent_executions, key of conversations, key of execution_checkpoints, tool_execution_records_open
-- Index: key of conversation_budgets, key of messages
--
-- :agent_execution_id text
-- :conversation_id text
-- :step bigint
-- :status_running text
-- :type_llm_complete text
-- :run_epoch bigint  The epoch of the caller's run.
-- :worker_id text  The worker that runs the agent execution, or empty.
UPDATE agent_executions
SET generation = generation + 1, called_step = :step,
    step_calls = CASE WHEN called_step = :step THEN step_calls + 1 ELSE 1 END, worker_id = :worker_id
WHERE id = :agent_execution_id AND conversation_id = :conversation_id AND status = :status_running
    -- The conversation is read without its lock, as of the statement's start. A claim in the database by then counts as
    -- earlier than a newer run.
    AND (SELECT run_epoch FROM conversations WHERE conversations.id = :conversation_id) <= :run_epoch
    AND NOT EXISTS (
        SELECT 1 FROM execution_checkpoints
        WHERE agent_execution_id = :agent_execution_id AND step_number = :step
            AND checkpoint_type = :type_llm_complete AND execution_id = ''
    )
    -- A cancel is stored before its answer, so no call begins after an answered cancel.
    AND (SELECT m.cancel_reason FROM messages m
         WHERE m.conversation_id = :conversation_id AND m.id = agent_executions.message_id) IS NULL
RETURNING
    generation, step_calls,
    (steps < :step OR EXISTS (
        SELECT 1 FROM tool_execution_records r
        WHERE r.agent_execution_id = agent_executions.id AND r.step = :step - 1 AND r.observed_sequence IS NULL
    )) AS is_ahead,
    (SELECT log_id FROM conversations WHERE conversations.id = :conversation_id) AS log_id,
    (SELECT tenant_id FROM conversations WHERE conversations.id = :conversation_id) AS tenant_id,
    (SELECT NULLIF(owner_id, '') FROM conversations WHERE conversations.id = :conversation_id) AS owner_id,
    (SELECT metadata FROM conversations WHERE conversations.id = :conversation_id) AS metadata,
    EXISTS (
        SELECT 1 FROM conversation_budgets b
        WHERE b.conversation_id = :conversation_id AND b.turn_id = agent_executions.root_execution_id
    ) AS has_budget,
    reserved_tokens > 0 AS has_reserved, step_calls > 1 AND settled_generation < generation - 1 AS has_open_call,
    background_response, model_chain
