-- Selects, for every given tool, the definition of the last call that was allowed to run.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :tool_names text[]
-- :runnable_approvals text[]  The approvals that let a tool run.
SELECT tool_name, definition_hash
FROM (
    SELECT
        tool_name,
        definition_hash,
        ROW_NUMBER() OVER (PARTITION BY tool_name ORDER BY created_at DESC, call_index DESC) AS rank
    FROM tool_execution_records
    WHERE conversation_id = :conversation_id AND definition_hash <> '' AND tool_name IN (:tool_names)
        AND approval IN (:runnable_approvals)
) AS used
WHERE rank = 1
