-- Runs of a conversation's workflow, counted by the store. `run_epoch` is that of the run which began or took over a turn
-- last: what an older run still asks for is refused. `granted_epoch` is the largest that any run was given. A worker of
-- the release before names no epoch, and is not refused.
ALTER TABLE conversations ADD COLUMN run_epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN granted_epoch BIGINT NOT NULL DEFAULT 0;
