-- One row: the version of the oldest Everturn that works with these tables. A migration that takes away what earlier
-- versions need raises it. Versions before this one do not read it: they work with their own tables only.
CREATE TABLE schema_range (id BIGINT PRIMARY KEY, oldest_version BIGINT NOT NULL);
INSERT INTO schema_range (id, oldest_version) VALUES (1, 110);
