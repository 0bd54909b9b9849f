-- The audit trail: who did what, when, from where, and what became of it. Rows name nothing that is removed, so they outlive
-- what they tell of. An entry stays as it was written: nobody may change it, and nobody may remove it before `keep_until`.
-- `tenant_id` is NULL where no tenant is known. `details` is JSON.
CREATE TABLE audit_events (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    keep_until TEXT NOT NULL,
    tenant_id TEXT,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    action TEXT NOT NULL,
    target_kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    address TEXT NOT NULL,
    request_id TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;
CREATE INDEX audit_events_by_tenant ON audit_events (tenant_id, id);
CREATE INDEX audit_events_by_action ON audit_events (action, id);
CREATE INDEX audit_events_by_time ON audit_events (at);

-- An insert that replaces a row removes it without asking the trigger of removals.
CREATE TRIGGER audit_events_no_replace BEFORE INSERT ON audit_events
    WHEN EXISTS (SELECT 1 FROM audit_events WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit trail stays as it was written until its retention is over');
END;
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit trail stays as it was written until its retention is over');
END;
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
    WHEN julianday(OLD.keep_until) > julianday('now')
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit trail stays as it was written until its retention is over');
END;
