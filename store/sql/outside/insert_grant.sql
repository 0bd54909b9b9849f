-- Grants a tool to a conversation: the tool runs without further approvals.
-- Index: key of tool_grants
--
-- :conversation_id text
-- :tool_name text
-- :now timestamp
-- :definition_hash text
INSERT INTO tool_grants (conversation_id, tool_name, granted_at, definition_hash)
VALUES (:conversation_id, :tool_name, :now, :definition_hash)
ON CONFLICT (conversation_id, tool_name) DO UPDATE
SET granted_at = excluded.granted_at, definition_hash = excluded.definition_hash
