-- What callers prove who they are with: API keys, and the browser sessions opened with them. Never the secret itself,
-- only its SHA-256. parent_id: the key that a session was opened with; revoking it ends the session.
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    parent_id TEXT REFERENCES api_keys (id),
    secret_hash BLOB NOT NULL,
    tenant_id TEXT NOT NULL,
    owner_id TEXT,
    scopes TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    last_used_at TEXT
);
CREATE INDEX api_keys_by_kind ON api_keys (kind, id);
-- For the foreign key, which is checked when ended sessions are removed.
CREATE INDEX api_keys_by_parent ON api_keys (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX api_keys_ended_sessions ON api_keys (expires_at) WHERE kind = 'session';
