-- Worker processes that live. Each counts `renewals` up again and again; gateways see when it stops. A worker of the release
-- before has no row, and is not missed. `identity` is what the engine calls the worker. `takes` counts how often gateways have
-- taken the lease since its worker renewed it last.
CREATE TABLE worker_leases (
    id TEXT COLLATE "C" PRIMARY KEY,
    identity TEXT NOT NULL,
    lease_ms BIGINT NOT NULL,
    renewals BIGINT NOT NULL DEFAULT 0,
    takes BIGINT NOT NULL DEFAULT 0
);
-- The worker that made the last LLM call of an agent execution. '': a worker of the release before, or none yet.
ALTER TABLE agent_executions ADD COLUMN worker_id TEXT COLLATE "C" NOT NULL DEFAULT '';
