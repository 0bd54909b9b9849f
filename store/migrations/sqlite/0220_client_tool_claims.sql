-- Which client runs a call of a client tool, and until when nobody else may begin it. `claims` counts the clients that have
-- begun it. A call that nobody has claimed has no row. A release that knows no claims removes them with their conversation.
CREATE TABLE client_tool_claims (
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    execution_id TEXT NOT NULL,
    claimant TEXT NOT NULL,
    claims INTEGER NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (conversation_id, execution_id)
) STRICT;
