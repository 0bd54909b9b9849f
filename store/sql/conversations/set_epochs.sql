-- Sets the epoch of the run that owns the conversation, and the largest granted epoch.
-- Index: key of conversations
--
-- :conversation_id text
-- :run_epoch bigint
-- :granted_epoch bigint
UPDATE conversations
SET run_epoch = :run_epoch, granted_epoch = :granted_epoch
WHERE id = :conversation_id
