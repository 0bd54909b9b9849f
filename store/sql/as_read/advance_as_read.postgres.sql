-- Updates the row of a conversation for a batch that was built without the lock. The statement changes no row when the
-- conversation has changed since it was read, or when a newer run owns the conversation.
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
-- :read_sequence bigint
-- :read_log_id text
-- :run_epoch bigint
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
WHERE id = :conversation_id AND last_sequence = :read_sequence AND log_id = :read_log_id AND run_epoch <= :run_epoch
RETURNING id
