-- Begins the budget of a turn. The conversation's cost so far stays. No earlier turn still has a reservation, because a
-- conversation has one turn at a time.
-- Index: key of conversations, key of conversation_budgets
--
-- :conversation_id text
-- :turn_id text
-- :max_steps bigint?
-- :max_tokens bigint?
-- :max_nano bigint?
-- :max_conversation_tokens bigint?
-- :max_conversation_nano bigint?
-- :max_day_tokens bigint?
-- :max_day_nano bigint?
INSERT INTO conversation_budgets (
    conversation_id, turn_id, tenant_id, max_steps, max_tokens, max_nano, max_conversation_tokens,
    max_conversation_nano, max_day_tokens, max_day_nano
)
VALUES (
    :conversation_id, :turn_id, (SELECT tenant_id FROM conversations WHERE id = :conversation_id), :max_steps,
    :max_tokens, :max_nano, :max_conversation_tokens, :max_conversation_nano, :max_day_tokens, :max_day_nano
)
ON CONFLICT (conversation_id) DO UPDATE
SET turn_id = excluded.turn_id, tenant_id = excluded.tenant_id, max_steps = excluded.max_steps,
    max_tokens = excluded.max_tokens, max_nano = excluded.max_nano,
    max_conversation_tokens = excluded.max_conversation_tokens,
    max_conversation_nano = excluded.max_conversation_nano, max_day_tokens = excluded.max_day_tokens,
    max_day_nano = excluded.max_day_nano, turn_steps = 0, turn_tokens = 0, turn_nano = 0, reserved_tokens = 0,
    reserved_nano = 0
