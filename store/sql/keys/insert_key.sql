-- Inserts a key or a session. The statement inserts no row when the id is taken.
-- Index: key of api_keys
--
-- :key_id text
-- :kind text
-- :parent_id text?
-- :secret_hash bytes
-- :tenant_id text
-- :owner_id text?
-- :scopes text
-- :name text
-- :made_by_key text?
-- :made_by_subject text?
-- :now timestamp
-- :expires_at timestamp?
-- :signed_in_at timestamp
INSERT INTO api_keys (
    id, kind, parent_id, secret_hash, tenant_id, owner_id, scopes, name, made_by_key, made_by_subject, created_at,
    expires_at, signed_in_at
)
VALUES (
    :key_id, :kind, :parent_id, :secret_hash, :tenant_id, :owner_id, :scopes, :name, :made_by_key, :made_by_subject,
    :now, :expires_at, :signed_in_at
)
ON CONFLICT (id) DO NOTHING
