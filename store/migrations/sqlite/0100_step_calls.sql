-- The LLM calls of the step that was called last, so that no step is called without end, whichever runs and workers call
-- it. `called_step` is that step; -1 before the first call. A worker of the release before counts nothing.
ALTER TABLE agent_executions ADD COLUMN called_step INTEGER NOT NULL DEFAULT -1;
ALTER TABLE agent_executions ADD COLUMN step_calls INTEGER NOT NULL DEFAULT 0;
