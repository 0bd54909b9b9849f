-- A conversation's event log. One that is created anew after it was removed has another log: readers, live texts and
-- cursors of the old one do not fit it. Rows from before have none; their id stands for it.
ALTER TABLE conversations ADD COLUMN log_id TEXT NOT NULL DEFAULT '';
