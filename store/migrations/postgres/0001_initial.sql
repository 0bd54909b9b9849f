-- The same tables as in SQLite (REQUIREMENTS A3, B1, B8, B10 and D), in PostgreSQL's types: JSONB, timestamptz.
-- Keys are COLLATE "C": they sort as in SQLite, compare as bytes, and no upgrade of the system's locales can
-- break their indexes. Foreign keys of a table name its execution before its message: that is the order in which
-- an insert locks them, and in which retention removes them (see store/src/backend/mod.rs, "Locks").

-- Agents as turns are pinned to them, by the hash of their JSON.
CREATE TABLE agent_definitions (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    definition JSONB NOT NULL
);

CREATE TABLE conversations (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id TEXT COLLATE "C" NOT NULL,
    agent TEXT NOT NULL,
    title TEXT NOT NULL,
    message_count BIGINT NOT NULL DEFAULT 0,
    last_sequence BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX conversations_by_tenant ON conversations (tenant_id, updated_at DESC, id DESC);

-- sequence_number: of the event with which the message entered the timeline; NULL while it is queued.
CREATE TABLE messages (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    id TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    client_message_id TEXT COLLATE "C",
    agent_execution_id TEXT COLLATE "C",
    step BIGINT,
    sequence_number BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    content TEXT NOT NULL,
    tool_calls JSONB NOT NULL,
    tool_results JSONB NOT NULL,
    PRIMARY KEY (conversation_id, id),
    UNIQUE (conversation_id, client_message_id),
    UNIQUE (conversation_id, sequence_number),
    -- Queued is exactly: not yet in the timeline.
    CHECK ((status = 'queued') = (sequence_number IS NULL))
);
CREATE INDEX messages_queued ON messages (conversation_id, created_at, id) WHERE status = 'queued';

CREATE TABLE agent_executions (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    parent_execution_id TEXT COLLATE "C" REFERENCES agent_executions (id),
    root_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id),
    depth BIGINT NOT NULL,
    parent_tool_call_id TEXT COLLATE "C",
    agent TEXT NOT NULL,
    agent_hash TEXT COLLATE "C" NOT NULL REFERENCES agent_definitions (hash),
    status TEXT NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    steps BIGINT NOT NULL DEFAULT 0,
    error_code TEXT,
    started_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);
CREATE INDEX agent_executions_running ON agent_executions (conversation_id, started_at) WHERE status = 'running';
-- For the foreign keys that are checked when retention removes rows.
CREATE INDEX agent_executions_by_message ON agent_executions (conversation_id, message_id);
CREATE INDEX agent_executions_by_root ON agent_executions (root_execution_id);
CREATE INDEX agent_executions_by_parent ON agent_executions (parent_execution_id)
    WHERE parent_execution_id IS NOT NULL;

-- id: UUIDv5 of conversation, batch key and place in the batch. Its uniqueness is what makes a batch idempotent
-- (invariant 3), and looking up place 0 answers "is this batch stored?".
CREATE TABLE agent_execution_events (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    message_id TEXT COLLATE "C" NOT NULL,
    event_type TEXT NOT NULL,
    sequence_number BIGINT NOT NULL,
    batch_key TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    event_data JSONB NOT NULL,
    UNIQUE (conversation_id, sequence_number),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);

-- generation and the token counts repeat what execution_state says, so that no query looks into its JSON.
CREATE TABLE execution_checkpoints (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    agent_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id),
    checkpoint_type TEXT COLLATE "C" NOT NULL,
    execution_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    step_number BIGINT NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    execution_state JSONB NOT NULL,
    UNIQUE (agent_execution_id, step_number, checkpoint_type, execution_id),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);
-- The last checkpoint of a turn, for resume (B5).
CREATE INDEX execution_checkpoints_by_message ON execution_checkpoints (conversation_id, message_id, step_number);

CREATE TABLE tool_execution_records (
    conversation_id TEXT COLLATE "C" NOT NULL,
    execution_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    agent_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id),
    step BIGINT NOT NULL,
    call_index BIGINT NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    tool_name TEXT NOT NULL,
    effect TEXT NOT NULL,
    timeout_ms BIGINT NOT NULL,
    status TEXT NOT NULL,
    attempt BIGINT NOT NULL DEFAULT 0,
    is_error BOOLEAN NOT NULL DEFAULT FALSE,
    duration_ms BIGINT NOT NULL DEFAULT 0,
    observed_sequence BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    signatures JSONB NOT NULL,
    tool_input JSONB NOT NULL,
    events JSONB NOT NULL,
    result JSONB,
    full_result JSONB,
    PRIMARY KEY (conversation_id, execution_id),
    UNIQUE (conversation_id, call_id),
    UNIQUE (agent_execution_id, step, call_index),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);
CREATE INDEX tool_execution_records_open ON tool_execution_records (agent_execution_id, step, call_index)
    WHERE observed_sequence IS NULL;

-- Plan ids are a tool's, so they are unique in their conversation only.
CREATE TABLE work_plans (
    conversation_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    steps JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversation_id, id),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);
