-- Whose context a message belongs to: empty for the conversation's own, else the execution of a sub-agent.
ALTER TABLE messages ADD COLUMN thread TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX messages_by_thread ON messages (conversation_id, thread, sequence_number);
-- The tree of executions, page by page.
CREATE INDEX agent_executions_by_start ON agent_executions (conversation_id, started_at, id);
