-- Notes a try of an LLM call without a reply. A step keeps its newest tries, and a new try takes the slot of the oldest
-- try. A noted try changes no row, and a try of a removed agent execution changes no row.
-- Index: key of call_tries, key of agent_executions
--
-- :agent_execution_id text
-- :conversation_id text
-- :step bigint
-- :generation bigint  The generation of the claim.
-- :model text  `provider/model`.
-- :worker_id text
-- :code text
-- :reason text
-- :is_final boolean  True when no further try follows.
-- :retry_after_ms bigint?  The pause before the next try, if known.
-- :started_at timestamp
-- :ended_at timestamp
-- :keep bigint  The number of kept tries of a step.
INSERT INTO call_tries (
    agent_execution_id, step, slot, number, generation, model, worker_id, code, reason, is_final, retry_after_ms,
    started_at, ended_at
)
SELECT
    :agent_execution_id, :step, noted.tries % :keep, noted.tries + 1, :generation, :model, :worker_id, :code, :reason,
    :is_final, :retry_after_ms, :started_at, :ended_at
FROM (
    SELECT COALESCE(MAX(number), 0) AS tries FROM call_tries
    WHERE agent_execution_id = :agent_execution_id AND step = :step
) AS noted
WHERE EXISTS (
        SELECT 1 FROM agent_executions WHERE id = :agent_execution_id AND conversation_id = :conversation_id
    )
    AND NOT EXISTS (
        SELECT 1 FROM call_tries
        WHERE agent_execution_id = :agent_execution_id AND step = :step AND generation = :generation
    )
ON CONFLICT (agent_execution_id, step, slot) DO UPDATE
SET number = excluded.number, generation = excluded.generation, model = excluded.model,
    worker_id = excluded.worker_id, code = excluded.code, reason = excluded.reason, is_final = excluded.is_final,
    retry_after_ms = excluded.retry_after_ms, started_at = excluded.started_at, ended_at = excluded.ended_at
