-- Budgets, and what calls of models took.
--
-- The newest turn of a conversation that had a budget: its limits, and what it and the conversation have taken. `reserved_*` is
-- what calls may still take that have been let through and whose answers are not stored.
CREATE TABLE conversation_budgets (
    conversation_id TEXT COLLATE "C" PRIMARY KEY,
    turn_id TEXT COLLATE "C" NOT NULL,
    tenant_id TEXT COLLATE "C" NOT NULL,
    max_steps BIGINT,
    max_tokens BIGINT,
    max_nano BIGINT,
    max_conversation_tokens BIGINT,
    max_conversation_nano BIGINT,
    max_day_tokens BIGINT,
    max_day_nano BIGINT,
    turn_steps BIGINT NOT NULL DEFAULT 0,
    turn_tokens BIGINT NOT NULL DEFAULT 0,
    turn_nano BIGINT NOT NULL DEFAULT 0,
    conversation_tokens BIGINT NOT NULL DEFAULT 0,
    conversation_nano BIGINT NOT NULL DEFAULT 0,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    reserved_nano BIGINT NOT NULL DEFAULT 0
);

-- What the calls of a tenant took on a day in UTC, by model. The rows outlive their conversations. A day of a model has several
-- rows, so that the turns of a tenant do not wait for each other.
CREATE TABLE usage_days (
    tenant_id TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cut_calls BIGINT NOT NULL,
    cut_tokens BIGINT NOT NULL,
    cut_nano BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, day, model, slot)
);

-- What the call of an agent execution that is being made may take; 0 when none is made. `reserved_step` is the last step that
-- was counted.
ALTER TABLE agent_executions ADD COLUMN reserved_step BIGINT NOT NULL DEFAULT -1;
ALTER TABLE agent_executions ADD COLUMN reserved_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agent_executions ADD COLUMN reserved_nano BIGINT NOT NULL DEFAULT 0;

-- The cost is absent where the model has no price.
ALTER TABLE execution_checkpoints ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE execution_checkpoints ADD COLUMN cache_write_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE execution_checkpoints ADD COLUMN reasoning_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE execution_checkpoints ADD COLUMN cost_nano BIGINT;
