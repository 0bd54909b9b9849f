-- Who runs a tool ('' a worker, 'client'), and how its approval stands ('' none needed, pending, approved, denied,
-- expired, cancelled). input_hash binds an approval to the tool and the input that was shown.
ALTER TABLE tool_execution_records ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE tool_execution_records ADD COLUMN approval TEXT NOT NULL DEFAULT '';
ALTER TABLE tool_execution_records ADD COLUMN input_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE tool_execution_records ADD COLUMN expires_at TEXT;
-- What waits for someone outside.
CREATE INDEX tool_execution_records_waiting ON tool_execution_records (conversation_id, created_at, call_index)
    WHERE status = 'pending' AND (approval = 'pending' OR kind = 'client');

-- Tools for which no more approvals are asked in a conversation.
CREATE TABLE tool_grants (
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    tool_name TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    PRIMARY KEY (conversation_id, tool_name)
) STRICT;
