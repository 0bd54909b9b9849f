-- What a message does when a turn runs, for a gateway that starts its turn later. '': a message of a gateway of the
-- release before, which waits.
ALTER TABLE messages ADD COLUMN on_busy TEXT NOT NULL DEFAULT '';
-- Conversations in which a message waits or a turn runs and nothing happens, and when they are looked at.
CREATE TABLE turn_checks (
    conversation_id TEXT COLLATE "C" PRIMARY KEY,
    due_at TIMESTAMPTZ NOT NULL,
    starts BIGINT NOT NULL DEFAULT 0,
    last_sequence BIGINT NOT NULL DEFAULT 0,
    signalled_until TIMESTAMPTZ
);
CREATE INDEX turn_checks_due ON turn_checks (due_at, conversation_id);
-- One row: when a gateway last asked what to look at. Whoever changes it is the one that looks.
CREATE TABLE reconciler (id BIGINT PRIMARY KEY, asked_at TIMESTAMPTZ NOT NULL);
INSERT INTO reconciler (id, asked_at) VALUES (1, 'epoch');
