-- Selects the definition of an agent by its hash.
-- Index: key of agent_definitions
--
-- :hash text
SELECT definition
FROM agent_definitions
WHERE hash = :hash
