-- Who runs a tool ('' a worker, 'client'), and how its approval stands ('' none needed, pending, approved, denied,
-- expired, cancelled). input_hash binds an approval to the tool and the input that was shown.
ALTER TABLE tool_execution_records ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN approval TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN input_hash TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN expires_at TIMESTAMPTZ;
-- What waits for someone outside.
CREATE INDEX tool_execution_records_waiting ON tool_execution_records (conversation_id, created_at, call_index)
    WHERE status = 'pending' AND (approval = 'pending' OR kind = 'client');

-- Tools for which no more approvals are asked in a conversation.
CREATE TABLE tool_grants (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    tool_name TEXT COLLATE "C" NOT NULL,
    granted_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversation_id, tool_name)
);
