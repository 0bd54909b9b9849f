-- The trace that a turn or a sub-agent belongs to, while traces are exported; without them there are no rows. `trace_parent` and
-- `trace_state` are the headers of W3C Trace Context that name the span above the agent's. The worker that begins the agent
-- execution fills in the rest.
CREATE TABLE trace_contexts (
    conversation_id TEXT NOT NULL,
    agent_execution_id TEXT NOT NULL,
    trace_parent TEXT NOT NULL,
    trace_state TEXT NOT NULL,
    agent TEXT,
    begun_at TEXT,
    PRIMARY KEY (conversation_id, agent_execution_id)
) STRICT;
