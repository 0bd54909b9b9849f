-- The answers to approvals that gateways have passed on, by their ids, with who gave each of them as the gateway has
-- authenticated them ('' where it asks for no credential). An answer that is not here came through the engine.
CREATE TABLE approval_answers (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    execution_id TEXT COLLATE "C" NOT NULL,
    answer_id TEXT COLLATE "C" NOT NULL,
    answered_by TEXT COLLATE "C" NOT NULL,
    answered_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversation_id, execution_id, answer_id)
);
-- Who sent a message, as the gateway has authenticated them; NULL when no gateway knows.
ALTER TABLE messages ADD COLUMN sent_by TEXT COLLATE "C";
-- The definition that a call was made for ('' any), and a `CallRule`.
ALTER TABLE tool_execution_records ADD COLUMN definition_hash TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN approval_rule JSONB NOT NULL DEFAULT '{}';
-- The definition for which no more approvals are asked ('' one that is not known).
ALTER TABLE tool_grants ADD COLUMN definition_hash TEXT COLLATE "C" NOT NULL DEFAULT '';
