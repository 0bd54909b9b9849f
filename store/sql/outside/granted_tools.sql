-- Selects which of the given tools are granted to a conversation, with the definitions of the grants.
-- Index: key of tool_grants
--
-- :conversation_id text
-- :tool_names text[]
SELECT tool_name, definition_hash
FROM tool_grants
WHERE conversation_id = :conversation_id AND tool_name IN (:tool_names)
