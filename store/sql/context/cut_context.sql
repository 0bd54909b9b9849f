-- Moves the start of a thread's context: the summary and the kept messages stand for the messages up to the cut.
-- Index: none: inserts one row
--
-- :conversation_id text
-- :thread text  The sub-agent of the thread, or empty.
-- :through_sequence bigint  The last event before the cut.
-- :agent_execution_id text
-- :step bigint
-- :summary text
-- :kept_message_ids text[]
-- :now timestamp
INSERT INTO context_cuts (
    conversation_id, thread, through_sequence, agent_execution_id, step, summary, kept_message_ids, created_at
)
VALUES (
    :conversation_id, :thread, :through_sequence, :agent_execution_id, :step, :summary, :kept_message_ids, :now
)
