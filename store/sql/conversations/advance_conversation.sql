-- Updates the row of a conversation for a batch, under the conversation's lock.
-- Index: key of conversations
--
-- :conversation_id text
-- :last_sequence bigint
-- :new_messages bigint
-- :now timestamp
-- :changes_lists boolean  True when the batch changes the conversation in lists.
-- :title text  The title for a conversation without a title, or empty.
-- :spent_input bigint  The sums of a turn that the batch ends, or 0.
-- :spent_output bigint
-- :spent_cached bigint
-- :spent_cache_write bigint
-- :spent_reasoning bigint
-- :spent_nano bigint?
-- :spent_estimated bigint
-- :spent_cut_calls bigint
-- :spent_cut_tokens bigint
-- :spent_cut_nano bigint
UPDATE conversations
SET last_sequence = :last_sequence, message_count = message_count + :new_messages, updated_at = :now,
    active_at = CASE WHEN :changes_lists THEN :now ELSE active_at END,
    title = CASE title WHEN '' THEN :title ELSE title END,
    spent_input = spent_input + :spent_input, spent_output = spent_output + :spent_output,
    spent_cached = spent_cached + :spent_cached, spent_cache_write = spent_cache_write + :spent_cache_write,
    spent_reasoning = spent_reasoning + :spent_reasoning,
    spent_nano = COALESCE(spent_nano + :spent_nano, spent_nano, :spent_nano),
    spent_estimated = spent_estimated + :spent_estimated, spent_cut_calls = spent_cut_calls + :spent_cut_calls,
    spent_cut_tokens = spent_cut_tokens + :spent_cut_tokens, spent_cut_nano = spent_cut_nano + :spent_cut_nano
WHERE id = :conversation_id
