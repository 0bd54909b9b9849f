-- Selects the data that decides about the `delegate` calls of an agent execution: its depth and its definition, the
-- definition at the root of the tree, and the number of sub-agents in the tree.
-- Index: key of agent_executions, key of agent_definitions, agent_executions_by_root
--
-- :agent_execution_id text
-- :conversation_id text
SELECT
    p.depth, p.root_execution_id, d.definition, o.definition AS root_definition,
    (SELECT COUNT(*) - 1 FROM agent_executions s WHERE s.root_execution_id = p.root_execution_id) AS sub_agents
FROM agent_executions p
JOIN agent_definitions d ON d.hash = p.agent_hash
JOIN agent_executions r ON r.id = p.root_execution_id
JOIN agent_definitions o ON o.hash = r.agent_hash
WHERE p.id = :agent_execution_id AND p.conversation_id = :conversation_id
