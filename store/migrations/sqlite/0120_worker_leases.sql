-- Worker processes that live. Each counts `renewals` up again and again; gateways see when it stops. A worker of the release
-- before has no row, and is not missed. `identity` is what the engine calls the worker. `takes` counts how often gateways have
-- taken the lease since its worker renewed it last.
CREATE TABLE worker_leases (
    id TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    lease_ms INTEGER NOT NULL,
    renewals INTEGER NOT NULL DEFAULT 0,
    takes INTEGER NOT NULL DEFAULT 0
) STRICT;
-- The worker that made the last LLM call of an agent execution. '': a worker of the release before, or none yet.
ALTER TABLE agent_executions ADD COLUMN worker_id TEXT NOT NULL DEFAULT '';
