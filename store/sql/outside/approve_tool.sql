-- Sets the approval of a tool execution, with the approved input, or with the answer to the tool's question.
-- Index: key of tool_execution_records
--
-- :conversation_id text
-- :execution_id text
-- :approval text
-- :input_hash text
-- :expires_at timestamp?
-- :tool_input json
-- :question json?
UPDATE tool_execution_records
SET approval = :approval, input_hash = :input_hash, expires_at = :expires_at,
    tool_input = :tool_input, question = :question
WHERE conversation_id = :conversation_id AND execution_id = :execution_id
