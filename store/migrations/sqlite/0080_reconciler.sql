-- What a message does when a turn runs, for a gateway that starts its turn later. '': a message of a gateway of the
-- release before, which waits.
ALTER TABLE messages ADD COLUMN on_busy TEXT NOT NULL DEFAULT '';
-- Conversations in which a message waits or a turn runs and nothing happens, and when they are looked at.
CREATE TABLE turn_checks (
    conversation_id TEXT PRIMARY KEY,
    due_at TEXT NOT NULL,
    starts INTEGER NOT NULL DEFAULT 0,
    last_sequence INTEGER NOT NULL DEFAULT 0,
    signalled_until TEXT
) STRICT;
CREATE INDEX turn_checks_due ON turn_checks (due_at, conversation_id);
-- One row: when a gateway last asked what to look at. Whoever changes it is the one that looks.
CREATE TABLE reconciler (id INTEGER PRIMARY KEY, asked_at TEXT NOT NULL) STRICT;
INSERT INTO reconciler (id, asked_at) VALUES (1, '1970-01-01T00:00:00+00:00');
