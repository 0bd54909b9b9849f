-- A worker that has stopped by itself leaves its lease, ended, until a gateway has looked for what the engine gave the worker as it
-- stopped. A gateway of the release before takes such a worker for dead, and looks, too; a worker of that release removes its lease.
ALTER TABLE worker_leases ADD COLUMN is_ended BOOLEAN NOT NULL DEFAULT FALSE;
