-- Budgets, and what calls of models took.
--
-- The newest turn of a conversation that had a budget: its limits, and what it and the conversation have taken. `reserved_*` is
-- what calls may still take that have been let through and whose answers are not stored.
CREATE TABLE conversation_budgets (
    conversation_id TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    max_steps INTEGER,
    max_tokens INTEGER,
    max_nano INTEGER,
    max_conversation_tokens INTEGER,
    max_conversation_nano INTEGER,
    max_day_tokens INTEGER,
    max_day_nano INTEGER,
    turn_steps INTEGER NOT NULL DEFAULT 0,
    turn_tokens INTEGER NOT NULL DEFAULT 0,
    turn_nano INTEGER NOT NULL DEFAULT 0,
    conversation_tokens INTEGER NOT NULL DEFAULT 0,
    conversation_nano INTEGER NOT NULL DEFAULT 0,
    reserved_tokens INTEGER NOT NULL DEFAULT 0,
    reserved_nano INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What the calls of a tenant took on a day in UTC, by model. The rows outlive their conversations. A day of a model has several
-- rows, so that the turns of a tenant do not wait for each other.
CREATE TABLE usage_days (
    tenant_id TEXT NOT NULL,
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    slot INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost_nano INTEGER NOT NULL,
    cut_calls INTEGER NOT NULL,
    cut_tokens INTEGER NOT NULL,
    cut_nano INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, day, model, slot)
) STRICT;

-- What the call of an agent execution that is being made may take; 0 when none is made. `reserved_step` is the last step that
-- was counted.
ALTER TABLE agent_executions ADD COLUMN reserved_step INTEGER NOT NULL DEFAULT -1;
ALTER TABLE agent_executions ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent_executions ADD COLUMN reserved_nano INTEGER NOT NULL DEFAULT 0;

-- The cost is absent where the model has no price.
ALTER TABLE execution_checkpoints ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution_checkpoints ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution_checkpoints ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution_checkpoints ADD COLUMN cost_nano INTEGER;
