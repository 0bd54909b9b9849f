-- Selects the trace context of an agent execution.
-- Index: key of trace_contexts
--
-- :conversation_id text
-- :agent_execution_id text
SELECT trace_parent, trace_state, agent, begun_at
FROM trace_contexts
WHERE conversation_id = :conversation_id AND agent_execution_id = :agent_execution_id
