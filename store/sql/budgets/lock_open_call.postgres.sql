-- Selects the facts about the last call of an agent execution, for the decision whether the call was cut, and locks the
-- agent execution. `context_bytes` is the size of the messages that the call has read.
-- Index: key of agent_executions, key of agent_definitions, key of execution_checkpoints, key of conversation_budgets
-- Index: messages_by_thread, key of context_cuts
--
-- :agent_execution_id text
-- :conversation_id text
-- :last_generation bigint  The largest valid generation.
-- :type_llm_complete text
SELECT
    e.root_execution_id, e.generation, e.settled_generation, e.called_step, e.reserved_tokens, e.reserved_nano,
    e.reserved_model, e.model_chain, d.definition,
    EXISTS (
        SELECT 1 FROM execution_checkpoints k
        WHERE k.agent_execution_id = e.id AND k.step_number = e.called_step
            AND k.checkpoint_type = :type_llm_complete AND k.execution_id = ''
    ) AS has_reply,
    EXISTS (
        SELECT 1 FROM conversation_budgets b
        WHERE b.conversation_id = e.conversation_id AND b.turn_id = e.root_execution_id
    ) AS has_budget,
    (
        SELECT
            CAST(COALESCE(SUM(
                OCTET_LENGTH(m.content) + OCTET_LENGTH(CAST(m.tool_calls AS TEXT))
                + OCTET_LENGTH(CAST(m.tool_results AS TEXT))
            ), 0) AS BIGINT)
        FROM messages m
        WHERE m.conversation_id = e.conversation_id
            AND m.thread = CASE WHEN e.parent_execution_id IS NULL THEN '' ELSE e.id END
            AND m.sequence_number > COALESCE((
                SELECT MAX(t.through_sequence) FROM context_cuts t
                WHERE t.conversation_id = e.conversation_id
                    AND t.thread = CASE WHEN e.parent_execution_id IS NULL THEN '' ELSE e.id END
            ), 0)
    ) AS context_bytes
FROM agent_executions e
JOIN agent_definitions d ON d.hash = e.agent_hash
WHERE e.id = :agent_execution_id AND e.conversation_id = :conversation_id AND e.generation <= :last_generation
FOR NO KEY UPDATE OF e
