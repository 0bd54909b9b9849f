-- The tables of REQUIREMENTS A3, B1, B8, B10 and D. Times are RFC 3339 text in UTC (their text order is their
-- time order), JSON is text kept to the letter. Large columns stand last, so that SQLite reads the small ones
-- without following overflow pages.

-- Agents as turns are pinned to them, by the hash of their JSON.
CREATE TABLE agent_definitions (
    hash TEXT NOT NULL PRIMARY KEY,
    definition TEXT NOT NULL
) STRICT;

CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    title TEXT NOT NULL,
    message_count INTEGER NOT NULL DEFAULT 0,
    last_sequence INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX conversations_by_tenant ON conversations (tenant_id, updated_at DESC, id DESC);

-- sequence_number: of the event with which the message entered the timeline; NULL while it is queued.
CREATE TABLE messages (
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    client_message_id TEXT,
    agent_execution_id TEXT,
    step INTEGER,
    sequence_number INTEGER,
    created_at TEXT NOT NULL,
    content TEXT NOT NULL,
    tool_calls TEXT NOT NULL,
    tool_results TEXT NOT NULL,
    PRIMARY KEY (conversation_id, id),
    UNIQUE (conversation_id, client_message_id),
    UNIQUE (conversation_id, sequence_number),
    -- Queued is exactly: not yet in the timeline.
    CHECK ((status = 'queued') = (sequence_number IS NULL))
) STRICT;
CREATE INDEX messages_queued ON messages (conversation_id, created_at, id) WHERE status = 'queued';

CREATE TABLE agent_executions (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    parent_execution_id TEXT REFERENCES agent_executions (id),
    root_execution_id TEXT NOT NULL REFERENCES agent_executions (id),
    depth INTEGER NOT NULL,
    parent_tool_call_id TEXT,
    agent TEXT NOT NULL,
    agent_hash TEXT NOT NULL REFERENCES agent_definitions (hash),
    status TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    steps INTEGER NOT NULL DEFAULT 0,
    error_code TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
) STRICT;
CREATE INDEX agent_executions_running ON agent_executions (conversation_id, started_at) WHERE status = 'running';

-- id: UUIDv5 of conversation, batch key and place in the batch. Its uniqueness is what makes a batch idempotent
-- (invariant 3), and looking up place 0 answers "is this batch stored?".
CREATE TABLE agent_execution_events (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    message_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    batch_key TEXT NOT NULL,
    created_at TEXT NOT NULL,
    event_data TEXT NOT NULL,
    UNIQUE (conversation_id, sequence_number),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
) STRICT;

-- generation and the token counts repeat what execution_state says, so that no query looks into its JSON.
CREATE TABLE execution_checkpoints (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    agent_execution_id TEXT NOT NULL REFERENCES agent_executions (id),
    checkpoint_type TEXT NOT NULL,
    execution_id TEXT NOT NULL DEFAULT '',
    step_number INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    execution_state TEXT NOT NULL,
    UNIQUE (agent_execution_id, step_number, checkpoint_type, execution_id),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
) STRICT;
-- The last checkpoint of a turn, for resume (B5).
CREATE INDEX execution_checkpoints_by_message ON execution_checkpoints (conversation_id, message_id, step_number);

CREATE TABLE tool_execution_records (
    conversation_id TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    agent_execution_id TEXT NOT NULL REFERENCES agent_executions (id),
    step INTEGER NOT NULL,
    call_index INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    effect TEXT NOT NULL,
    timeout_ms INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    is_error INTEGER NOT NULL DEFAULT 0,
    duration_ms INTEGER NOT NULL DEFAULT 0,
    observed_sequence INTEGER,
    created_at TEXT NOT NULL,
    started_at TEXT,
    finished_at TEXT,
    signatures TEXT NOT NULL,
    tool_input TEXT NOT NULL,
    events TEXT NOT NULL,
    result TEXT,
    full_result TEXT,
    PRIMARY KEY (conversation_id, execution_id),
    UNIQUE (conversation_id, call_id),
    UNIQUE (agent_execution_id, step, call_index),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
) STRICT;
CREATE INDEX tool_execution_records_open ON tool_execution_records (agent_execution_id, step, call_index)
    WHERE observed_sequence IS NULL;

-- Plan ids are a tool's, so they are unique in their conversation only.
CREATE TABLE work_plans (
    conversation_id TEXT NOT NULL,
    id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    title TEXT NOT NULL,
    steps TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (conversation_id, id),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
) STRICT;
