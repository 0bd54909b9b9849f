-- Keeps the trace context of a request for the turn that begins later.
-- Index: key of conversations, key of trace_contexts
--
-- :conversation_id text
-- :agent_execution_id text
-- :trace_parent text
-- :trace_state text
INSERT INTO trace_contexts (conversation_id, agent_execution_id, trace_parent, trace_state)
SELECT id, :agent_execution_id, :trace_parent, :trace_state
FROM conversations
WHERE id = :conversation_id AND tenant_id <> ''
ON CONFLICT DO NOTHING
