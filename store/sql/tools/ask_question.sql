-- Stores the question of a running tool: the call waits for a person, in the inbox of its tenant, and the tool may be
-- called again after the answer.
-- Index: key of tool_execution_records, key of conversations
--
-- :conversation_id text
-- :execution_id text
-- :pending text  The status pending.
-- :approval text
-- :input_hash text
-- :expires_at timestamp?
-- :question json?
UPDATE tool_execution_records
SET status = :pending, approval = :approval, input_hash = :input_hash, expires_at = :expires_at,
    question = :question, claimant = '', attempt = 0,
    inbox_tenant_id = (SELECT tenant_id FROM conversations WHERE id = :conversation_id)
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
