-- The name of a conversation in its tenant; NULL: its id is its name. So it is in the default tenant, and in conversations from
-- before there were names. A release that knows no names goes on inserting rows without one.
ALTER TABLE conversations ADD COLUMN name TEXT;
CREATE UNIQUE INDEX conversations_by_name ON conversations (tenant_id, COALESCE(name, id));
