-- Who of the tenant a conversation belongs to; empty: nobody in particular.
ALTER TABLE conversations ADD COLUMN owner_id TEXT NOT NULL DEFAULT '';
CREATE INDEX conversations_by_owner ON conversations (tenant_id, owner_id, updated_at DESC, id DESC);
