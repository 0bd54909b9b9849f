-- Frees a reservation in the conversation's budget, and adds the tokens and the cost that count as used.
-- Index: key of conversation_budgets
--
-- :conversation_id text
-- :turn_id text
-- :freed_tokens bigint
-- :freed_nano bigint
-- :used_tokens bigint
-- :used_nano bigint
UPDATE conversation_budgets
SET turn_tokens = turn_tokens + :used_tokens, turn_nano = turn_nano + :used_nano,
    conversation_tokens = conversation_tokens + :used_tokens, conversation_nano = conversation_nano + :used_nano,
    reserved_tokens = reserved_tokens - :freed_tokens, reserved_nano = reserved_nano - :freed_nano
WHERE conversation_id = :conversation_id AND turn_id = :turn_id
