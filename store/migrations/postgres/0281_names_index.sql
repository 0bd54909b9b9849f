-- no-transaction
-- A name is unique in its tenant. Where building the index was cut off, remove it (DROP INDEX conversations_by_name), and
-- migrate again.
CREATE UNIQUE INDEX CONCURRENTLY conversations_by_name ON conversations (tenant_id, COALESCE(name, id));
