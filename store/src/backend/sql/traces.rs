//! Texts about the traces of turns.

/// `$1` conversation, `$2` agent execution, `$3` parent, `$4` state.
pub(crate) const OFFER_TRACE: &str = "INSERT INTO trace_contexts \
     (conversation_id, agent_execution_id, trace_parent, trace_state) \
     SELECT id, $2, $3, $4 FROM conversations WHERE id = $1 ON CONFLICT DO NOTHING";

/// `$1` conversation, `$2` agent execution, `$3` parent, `$4` state, `$5` agent, `$6` now.
pub(crate) const BEGIN_TRACE: &str = "INSERT INTO trace_contexts \
     (conversation_id, agent_execution_id, trace_parent, trace_state, agent, begun_at) VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (conversation_id, agent_execution_id) DO UPDATE SET agent = COALESCE(trace_contexts.agent, excluded.agent), \
     begun_at = COALESCE(trace_contexts.begun_at, excluded.begun_at) \
     RETURNING trace_parent, trace_state, agent, begun_at";

/// `$1` conversation, `$2` agent execution.
pub(crate) const TRACE_OF: &str = "SELECT trace_parent, trace_state, agent, begun_at FROM trace_contexts \
     WHERE conversation_id = $1 AND agent_execution_id = $2";
