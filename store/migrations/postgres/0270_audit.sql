-- The audit trail: who did what, when, from where, and what became of it. Rows name nothing that is removed, so they outlive
-- what they tell of. An entry stays as it was written: nobody may change it, and nobody may remove it before `keep_until`.
-- `tenant_id` is NULL where no tenant is known. `details` is JSON.
CREATE TABLE audit_events (
    id BIGINT PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    keep_until TIMESTAMPTZ NOT NULL,
    tenant_id TEXT COLLATE "C",
    actor_kind TEXT COLLATE "C" NOT NULL,
    actor_id TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    target_kind TEXT COLLATE "C" NOT NULL,
    target_id TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    details TEXT NOT NULL
);
CREATE INDEX audit_events_by_tenant ON audit_events (tenant_id, id);
CREATE INDEX audit_events_by_action ON audit_events (action, id);
CREATE INDEX audit_events_by_time ON audit_events (at);

-- Numbers the entries without a gap. One transaction after the other appends, until it has committed, so that no smaller
-- number becomes visible after a larger one, and whoever reads on from a number misses nothing.
CREATE FUNCTION audit_events_append() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(418581342580);
    NEW.id := COALESCE((SELECT MAX(id) FROM audit_events), 0) + 1;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_events_append BEFORE INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_append();

CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry of the audit trail stays as it was written until its retention is over';
END
$$;
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_refuse();
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
    FOR EACH ROW WHEN (OLD.keep_until > clock_timestamp()) EXECUTE FUNCTION audit_events_refuse();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_events_refuse();
