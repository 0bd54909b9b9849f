-- Where the context of a thread begins: of the messages up to `through_sequence`, only `kept_message_ids` are sent to the model,
-- and `summary` stands for the others. The newest cut of a thread counts. `thread` is as in `messages`.
CREATE TABLE context_cuts (
    conversation_id TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    through_sequence BIGINT NOT NULL,
    agent_execution_id TEXT COLLATE "C" NOT NULL,
    step BIGINT NOT NULL,
    summary TEXT NOT NULL,
    kept_message_ids TEXT[] NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversation_id, thread, through_sequence)
);
