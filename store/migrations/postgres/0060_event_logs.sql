-- A conversation's event log. One that is created anew after it was removed has another log: readers, live texts and
-- cursors of the old one do not fit it. Rows from before have none; their id stands for it.
ALTER TABLE conversations ADD COLUMN log_id TEXT COLLATE "C" NOT NULL DEFAULT '';
-- For rows that a worker of the release before inserts.
ALTER TABLE conversations ALTER COLUMN log_id SET DEFAULT 'log_' || gen_random_uuid()::text;
