-- Gives back the claim of a tool that was not run.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :execution_id text
-- :agent_execution_id text
-- :claimant text
-- :pending text  The status pending.
-- :running text  The status running.
UPDATE tool_execution_records
SET status = :pending, claimant = '', attempt = attempt - 1
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
    AND agent_execution_id = :agent_execution_id AND status = :running AND claimant = :claimant
