-- What callers prove who they are with: API keys, and the browser sessions opened with them. Never the secret itself,
-- only its SHA-256. parent_id: the key that a session was opened with; revoking it ends the session.
CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C" REFERENCES api_keys (id),
    secret_hash BYTEA NOT NULL,
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C",
    scopes TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ
);
CREATE INDEX api_keys_by_kind ON api_keys (kind, id);
-- For the foreign key, which is checked when ended sessions are removed.
CREATE INDEX api_keys_by_parent ON api_keys (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX api_keys_ended_sessions ON api_keys (expires_at) WHERE kind = 'session';
