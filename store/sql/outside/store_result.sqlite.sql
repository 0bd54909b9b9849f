-- Ends a tool execution with a result from outside. The statement changes no row when the caller may not see the
-- conversation, when the tool execution has another kind, status or claimant, or when an approval is missing.
-- Index: key of tool_execution_records, key of conversations
--
-- :status text
-- :is_error boolean
-- :duration_ms bigint
-- :now timestamp
-- :events json
-- :result json
-- :full_result json?
-- :conversation_id text
-- :execution_id text
-- :tenant_id text
-- :owner_id text?
-- :runnable_approvals text[]  The approvals that let a tool run.
-- :kind text
-- :open_status text  The status before the end.
-- :claimant text?  NULL for any claimant.
UPDATE tool_execution_records
SET status = :status, is_error = :is_error, duration_ms = :duration_ms, finished_at = :now, events = :events,
    result = :result, full_result = :full_result
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
    AND EXISTS (
        SELECT 1 FROM conversations
        WHERE conversations.id = :conversation_id AND tenant_id = :tenant_id
            AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
    )
    AND kind = :kind AND status = :open_status
    AND (CAST(:claimant AS TEXT) IS NULL OR claimant = :claimant)
    AND approval IN (:runnable_approvals)
RETURNING agent_execution_id, message_id, step, attempt
