-- Removes a page of the agent executions of a hidden conversation that have no sub-agents any more.
-- Index: key of agent_executions, agent_executions_by_start, agent_executions_by_parent
--
-- :conversation_id text
-- :row_limit bigint
DELETE FROM agent_executions
WHERE conversation_id = :conversation_id AND id IN (
    SELECT e.id FROM agent_executions e
    WHERE e.conversation_id = :conversation_id
        -- `LIMIT` makes PostgreSQL look up the sub-agents of each row. Otherwise PostgreSQL may read the sub-agents of
        -- every conversation.
        AND (SELECT s.id FROM agent_executions s WHERE s.parent_execution_id = e.id LIMIT 1) IS NULL
    ORDER BY e.started_at, e.id
    LIMIT :row_limit
)
