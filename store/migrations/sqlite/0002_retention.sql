-- For the foreign keys that are checked when retention removes rows: without these each removed message or
-- execution would read the whole table.
CREATE INDEX agent_executions_by_message ON agent_executions (conversation_id, message_id);
CREATE INDEX agent_executions_by_root ON agent_executions (root_execution_id);
CREATE INDEX agent_executions_by_parent ON agent_executions (parent_execution_id)
    WHERE parent_execution_id IS NOT NULL;
