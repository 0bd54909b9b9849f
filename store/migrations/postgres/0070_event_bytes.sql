-- How many bytes an event's data has, so that a page of events is cut before the data is read. 0: not known, in rows
-- from before and in those that a worker of the release before inserts.
ALTER TABLE agent_execution_events ADD COLUMN data_bytes BIGINT NOT NULL DEFAULT 0;
