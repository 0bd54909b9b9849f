-- Who claimed a tool execution last: the same claimant may ask again when it did not hear the answer.
ALTER TABLE tool_execution_records ADD COLUMN claimant TEXT NOT NULL DEFAULT '';
