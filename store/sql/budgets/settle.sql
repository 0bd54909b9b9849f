-- Frees the reservation of an agent execution's call in the conversation's budget, and adds the actual cost. A running
-- agent execution has one call at a time. Without a budget, the statement finds no row and locks none.
-- Index: key of agent_executions, key of conversation_budgets
--
-- :agent_execution_id text
-- :conversation_id text
-- :used_tokens bigint
-- :used_nano bigint
UPDATE conversation_budgets AS b
SET turn_tokens = b.turn_tokens + :used_tokens, turn_nano = b.turn_nano + :used_nano,
    conversation_tokens = b.conversation_tokens + :used_tokens,
    conversation_nano = b.conversation_nano + :used_nano,
    reserved_tokens = b.reserved_tokens - held.reserved_tokens,
    reserved_nano = b.reserved_nano - held.reserved_nano
FROM (
    SELECT e.root_execution_id, e.reserved_tokens, e.reserved_nano
    FROM agent_executions e
    JOIN conversation_budgets o ON o.conversation_id = e.conversation_id AND o.turn_id = e.root_execution_id
    WHERE e.id = :agent_execution_id AND e.status = 'running'
) AS held
WHERE b.conversation_id = :conversation_id AND b.turn_id = held.root_execution_id
