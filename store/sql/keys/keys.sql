-- Selects a page of the keys of a kind.
-- Index: api_keys_by_kind, key of api_keys, key of owner_refusals
--
-- :kind text
-- :after_id text
-- :tenant_id text?  Without a tenant: the keys of every tenant.
-- :row_limit bigint
SELECT k.id, k.kind, k.parent_id, k.secret_hash, k.tenant_id, k.owner_id, k.scopes, k.name,
    k.made_by_key, k.made_by_subject, k.created_at, k.expires_at,
    COALESCE(k.revoked_at, p.revoked_at) AS revoked_at, k.last_used_at, k.signed_in_at,
    COALESCE(o.is_refused, FALSE) AS is_refused, o.ended_at,
    COALESCE(o.is_all_refused, FALSE) AS is_all_refused, o.all_ended_at
FROM api_keys k
LEFT JOIN api_keys p ON p.id = k.parent_id
LEFT JOIN owner_refusals o ON o.tenant_id = k.tenant_id AND o.owner_id = k.owner_id
WHERE k.kind = :kind AND k.id > :after_id AND (CAST(:tenant_id AS TEXT) IS NULL OR k.tenant_id = :tenant_id)
ORDER BY k.id
LIMIT :row_limit
