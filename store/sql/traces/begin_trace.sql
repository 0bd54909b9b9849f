-- Begins the trace of an agent execution, and returns the trace context. The first begin counts.
-- Index: key of trace_contexts
--
-- :conversation_id text
-- :agent_execution_id text
-- :trace_parent text
-- :trace_state text
-- :agent text
-- :now timestamp
INSERT INTO trace_contexts (conversation_id, agent_execution_id, trace_parent, trace_state, agent, begun_at)
VALUES (:conversation_id, :agent_execution_id, :trace_parent, :trace_state, :agent, :now)
ON CONFLICT (conversation_id, agent_execution_id) DO UPDATE SET
    agent = COALESCE(trace_contexts.agent, excluded.agent),
    begun_at = COALESCE(trace_contexts.begun_at, excluded.begun_at)
RETURNING trace_parent, trace_state, agent, begun_at
