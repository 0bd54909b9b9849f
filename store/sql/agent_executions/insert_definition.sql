-- Inserts the definition of an agent, unless the definition is stored already.
-- Index: key of agent_definitions
--
-- :hash text
-- :definition json
INSERT INTO agent_definitions (hash, definition)
VALUES (:hash, :definition)
ON CONFLICT (hash) DO NOTHING
