-- Ends a tool execution with a result from outside. The statement changes no row when the caller may not see the
-- conversation, when the tool execution has another kind, status or claimant, or when an approval is missing.
-- The statement also writes the checkpoint `tool_complete`, with a `ToolCompleteState`, and adds a change to the lists
-- with the conversation (`list_changes/note.sql`) when lists have counted the call as waiting.
-- Index: key of tool_execution_records, key of conversations, key of execution_checkpoints, key of list_changes
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
-- :checkpoint_id text
-- :checkpoint_type text
-- :execution_state json
-- :changes_lists boolean  True for a call that lists count as waiting.
-- :slot bigint
-- :first_version bigint
WITH ended AS (
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
), checkpoint AS (
    INSERT INTO execution_checkpoints (
        id, conversation_id, message_id, agent_execution_id, checkpoint_type, execution_id, step_number,
        generation, input_tokens, output_tokens, created_at, execution_state
    )
    SELECT
        :checkpoint_id, :conversation_id, message_id, agent_execution_id, :checkpoint_type, :execution_id, step,
        attempt, 0, 0, :now, :execution_state
    FROM ended
    ON CONFLICT DO NOTHING
), noted AS (
    INSERT INTO list_changes (tenant_id, owner_id, slot, version)
    SELECT tenant_id, '', :slot, :first_version FROM conversations
    WHERE id = :conversation_id AND :changes_lists AND (SELECT COUNT(*) FROM ended) > 0
    UNION ALL
    SELECT tenant_id, owner_id, 0, :first_version FROM conversations
    WHERE id = :conversation_id AND owner_id <> '' AND :changes_lists AND (SELECT COUNT(*) FROM ended) > 0
    ON CONFLICT (tenant_id, owner_id, slot) DO UPDATE
    SET version = list_changes.version + 1
)
SELECT * FROM ended
