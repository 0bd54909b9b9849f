-- All tables of Everturn, in PostgreSQL's types. The file for SQLite has the same tables.
--
-- Keys are COLLATE "C": they sort as in SQLite, they compare as bytes, and no upgrade of the system's locales can break their
-- indexes. The foreign keys of a table name the agent execution before the message: inserts lock the rows in that order, and
-- retention removes the rows in that order (store/src/backend/mod.rs, "Locks").

-- Definitions of agents, by the hash of their JSON. A turn is pinned to one definition.
CREATE TABLE agent_definitions (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    definition JSON NOT NULL
);

-- owner_id: the person of the tenant who owns the conversation; empty without an owner.
-- log_id: the event log. A conversation that is created anew after its removal has another log, so readers, live texts and
-- cursors of the old log do not fit the new log.
-- run_epoch: the epoch of the workflow run that began or took over a turn last. The store refuses older runs (invariant 11,
-- one run). granted_epoch: the largest epoch that the store has given to a run.
-- id: determined by the tenant and by the conversation's name in the tenant.
-- tenant_id: empty while the rows of a removed conversation are removed in several transactions (`removal/hide_conversation.sql`).
-- Callers, runs and new conversations with the id find nothing, or wait, until the row is gone.
-- spent_*: the sums over the LLM calls of ended turns, with their sub-agents. spent_nano is NULL while no model had a price.
-- spent_estimated: the replies whose tokens are estimated. spent_cut_*: the calls without a reply, as in agent_executions.
-- updated_at: the time of the last save. No index has the column, because every save changes the value: PostgreSQL then writes the
-- new version of the row into the row's page, and touches no index (a heap-only update).
-- active_at: the time of the last save that changed the row in lists: a turn began or ended, a message joined the turn, a call began
-- or ended to wait. Lists are in the order of this column. A turn without a wait moves the column twice.
-- fillfactor: inserts leave a fifth of each page free for heap-only updates. A turn updates the row at each save.
CREATE TABLE conversations (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id TEXT COLLATE "C" NOT NULL,
    agent TEXT NOT NULL,
    title TEXT NOT NULL,
    message_count BIGINT NOT NULL DEFAULT 0,
    last_sequence BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    active_at TIMESTAMPTZ NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    log_id TEXT COLLATE "C" NOT NULL,
    run_epoch BIGINT NOT NULL DEFAULT 0,
    granted_epoch BIGINT NOT NULL DEFAULT 0,
    spent_input BIGINT NOT NULL DEFAULT 0,
    spent_output BIGINT NOT NULL DEFAULT 0,
    spent_cached BIGINT NOT NULL DEFAULT 0,
    spent_cache_write BIGINT NOT NULL DEFAULT 0,
    spent_reasoning BIGINT NOT NULL DEFAULT 0,
    spent_nano BIGINT,
    model TEXT NOT NULL DEFAULT '',
    metadata JSON NOT NULL DEFAULT '{}',
    spent_estimated BIGINT NOT NULL DEFAULT 0,
    spent_cut_calls BIGINT NOT NULL DEFAULT 0,
    spent_cut_tokens BIGINT NOT NULL DEFAULT 0,
    spent_cut_nano BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX conversations_by_tenant ON conversations (tenant_id, active_at DESC, id DESC);
CREATE INDEX conversations_by_owner ON conversations (tenant_id, owner_id, active_at DESC, id DESC);

-- The version of each list of conversations. Every change that the list shows adds 1 in the transaction of the change, so a
-- gateway finds the changed lists without reading a list (`store/src/backend/list_changes.rs`).
-- owner_id: the owner whose list it is; empty for the list of the tenant, which has the conversations of every owner.
-- slot: the list of a tenant has up to 16 rows, so that the turns of a tenant do not wait for each other, and its version is the
-- sum. The list of an owner has the slot 0.
-- version: begins with the milliseconds of the first change since 1970, so that a row that was removed and made again has no old
-- version. The row of an owner goes with the owner's last conversation. The rows of a tenant stay.
-- fillfactor: half of each page is free for heap-only updates. Every update of a row changes the version alone.
CREATE TABLE list_changes (
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, slot)
) WITH (fillfactor = 50);

-- Conversations that were deleted recently. A worker that was taken for dead must not create them again.
CREATE TABLE deleted_conversations (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    deleted_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX deleted_conversations_by_age ON deleted_conversations (deleted_at);

-- sequence_number: the event with which the message entered the timeline; NULL while the message is queued.
-- thread: empty for the conversation's own messages, else the agent execution of the sub-agent.
-- on_busy: the client's wish for the case that a turn runs. A gateway that starts the turn later reads the wish here.
-- attachments: the blobs that the message names, with the facts that models and readers get about the blobs.
-- sent_by: the sender as the gateway authenticated them; NULL where no gateway did.
-- model: the chosen model of the message's turn, `provider/model`; NULL for the agent's own model.
CREATE TABLE messages (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    id TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    client_message_id TEXT COLLATE "C",
    agent_execution_id TEXT COLLATE "C",
    step BIGINT,
    sequence_number BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    content TEXT NOT NULL,
    tool_calls JSON NOT NULL,
    tool_results JSON NOT NULL,
    tenant_id TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL DEFAULT '',
    on_busy TEXT NOT NULL DEFAULT '',
    attachments JSON NOT NULL DEFAULT '[]',
    sent_by TEXT COLLATE "C",
    model TEXT,
    -- Why the turn of the message must end. Set while the message waits or its turn runs.
    cancel_reason TEXT,
    -- Raised by each change of the message or of an earlier message of the thread. A worker compares it with its last read.
    revision BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (conversation_id, id),
    UNIQUE (conversation_id, client_message_id),
    UNIQUE (conversation_id, sequence_number),
    -- Exactly the queued messages are not yet in the timeline.
    CHECK ((status = 'queued') = (sequence_number IS NULL))
);
CREATE INDEX messages_queued ON messages (conversation_id, created_at, id) WHERE status = 'queued';
-- For a tenant's limit of concurrent turns.
CREATE INDEX messages_queued_of_tenant ON messages (tenant_id, conversation_id) WHERE status = 'queued';
CREATE INDEX messages_by_thread ON messages (conversation_id, thread, sequence_number);
-- For the calls of agents over MCP (`everturn_store::mcp_message_id`): by the client's id, and the newest first.
CREATE INDEX messages_of_mcp ON messages (tenant_id, client_message_id) WHERE substr(client_message_id, 1, 4) = 'mcp_';
CREATE INDEX messages_of_mcp_by_age ON messages (tenant_id, created_at, id)
    WHERE substr(client_message_id, 1, 4) = 'mcp_';

-- called_step, step_calls: the step that was called last (-1 before the first call), and the number of its LLM calls. The count
-- ends a step after a limit of calls, across runs and workers.
-- worker_id: the worker that made the last LLM call; empty before the first call.
-- background_response: JSON of the response that the provider makes in the background for the last LLM call: step, provider,
-- model and id. The next caller of this step reads that response instead of paying for another response. NULL without a response.
-- reserved_step: the last step that a budget counted. reserved_tokens, reserved_nano: the most that the current call may take; 0
-- without a call. Without a budget, only a call that failed has the two numbers. reserved_model: the model of the reservation,
-- `provider/model`, where another model than the agent's is called.
-- settled_generation: the newest generation whose call needs no count any more: not made, refused, or noted as cut. A call of a
-- turn without a budget is cut when the call has a newer generation and no reply.
-- cut_calls, cut_tokens, cut_nano: the calls without a reply that the provider probably bills, and the most that they took.
-- model_chain: JSON of the fallback of the step that was called last: the step, the rank of the model that is called next, the
-- number of its failed calls, and the models that the step has given up. NULL before a call has failed.
-- error_code, error_message: the code and the beginning of the message of the event `error`.
-- after_turn_due: since when the hooks after the turn wait for their workflow; NULL without hooks, and after the hooks have begun. A
-- gateway that has looked at the hooks moves the time forward. after_turn_queue: the task queue of the workers that run the hooks;
-- NULL for the queue of the workflows.
CREATE TABLE agent_executions (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    parent_execution_id TEXT COLLATE "C" REFERENCES agent_executions (id),
    root_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id),
    depth BIGINT NOT NULL,
    parent_tool_call_id TEXT COLLATE "C",
    agent TEXT NOT NULL,
    agent_hash TEXT COLLATE "C" NOT NULL REFERENCES agent_definitions (hash),
    status TEXT NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    steps BIGINT NOT NULL DEFAULT 0,
    error_code TEXT,
    error_message TEXT,
    started_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    tenant_id TEXT COLLATE "C" NOT NULL,
    called_step BIGINT NOT NULL DEFAULT -1,
    step_calls BIGINT NOT NULL DEFAULT 0,
    worker_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    background_response JSON,
    reserved_step BIGINT NOT NULL DEFAULT -1,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    reserved_nano BIGINT NOT NULL DEFAULT 0,
    model_chain JSON,
    reserved_model TEXT,
    settled_generation BIGINT NOT NULL DEFAULT 0,
    cut_calls BIGINT NOT NULL DEFAULT 0,
    cut_tokens BIGINT NOT NULL DEFAULT 0,
    cut_nano BIGINT NOT NULL DEFAULT 0,
    after_turn_due TIMESTAMPTZ,
    after_turn_queue TEXT COLLATE "C",
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);
CREATE INDEX agent_executions_running ON agent_executions (conversation_id, started_at) WHERE status = 'running';
-- For a tenant's limit of concurrent turns.
CREATE INDEX agent_executions_running_of_tenant ON agent_executions (tenant_id, conversation_id)
    WHERE status = 'running' AND parent_execution_id IS NULL;
-- For the failures of a tenant, and of every tenant.
CREATE INDEX agent_executions_failed_of_tenant ON agent_executions (tenant_id, finished_at, id) WHERE status = 'failed';
CREATE INDEX agent_executions_failed ON agent_executions (finished_at, id) WHERE status = 'failed';
-- The turns with the status running, without sub-agents.
CREATE VIEW running_turns AS
SELECT id, conversation_id, tenant_id, message_id, status, steps, agent_hash, started_at
FROM agent_executions WHERE status = 'running' AND parent_execution_id IS NULL;
-- For the pages of the tree of agent executions.
CREATE INDEX agent_executions_by_start ON agent_executions (conversation_id, started_at, id);
-- For the foreign keys, which PostgreSQL checks when retention removes rows.
CREATE INDEX agent_executions_by_message ON agent_executions (conversation_id, message_id);
CREATE INDEX agent_executions_by_root ON agent_executions (root_execution_id);
CREATE INDEX agent_executions_by_parent ON agent_executions (parent_execution_id)
    WHERE parent_execution_id IS NOT NULL;
-- For the hooks whose workflow was not started.
CREATE INDEX agent_executions_after_turn ON agent_executions (after_turn_due) WHERE after_turn_due IS NOT NULL;
-- For the removal of definitions without an agent execution, and for the foreign key.
CREATE INDEX agent_executions_by_definition ON agent_executions (agent_hash);

-- id: UUIDv5 of the conversation, the batch key and the position in the batch. The unique id makes a batch idempotent (invariant 3,
-- idempotent saves), and a look-up of position 0 says whether the batch is stored.
-- data_bytes: the bytes of event_data, so that a page of events is cut before the data is read.
-- Events, tool executions and plans have no foreign key to messages. The removal of a message would look for the rows with the
-- message, and an index for the look-up would cost every save of a turn some writes. Without an index, each removed message reads
-- all rows of its conversation. No query needs the keys: a save writes the rows together with the message or after the message,
-- under the conversation's lock, and removals take the rows first.
CREATE TABLE agent_execution_events (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    message_id TEXT COLLATE "C" NOT NULL,
    event_type TEXT NOT NULL,
    sequence_number BIGINT NOT NULL,
    batch_key TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    event_data JSON NOT NULL,
    data_bytes BIGINT NOT NULL,
    UNIQUE (conversation_id, sequence_number)
);

-- generation, the token counts and the cost repeat facts of execution_state, so that no query looks into the JSON. cost_nano is NULL
-- where the model has no price. estimated_calls: 1 when the provider counted no tokens and Everturn estimated them, otherwise 0.
CREATE TABLE execution_checkpoints (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    agent_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id),
    checkpoint_type TEXT COLLATE "C" NOT NULL,
    execution_id TEXT COLLATE "C" NOT NULL,
    step_number BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    execution_state JSON NOT NULL,
    cached_tokens BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    reasoning_tokens BIGINT NOT NULL DEFAULT 0,
    cost_nano BIGINT,
    estimated_calls BIGINT NOT NULL DEFAULT 0,
    UNIQUE (agent_execution_id, step_number, checkpoint_type, execution_id),
    FOREIGN KEY (conversation_id, message_id) REFERENCES messages (conversation_id, id)
);
-- For the last checkpoint of a turn, from which a resume goes on.
CREATE INDEX execution_checkpoints_by_message ON execution_checkpoints (conversation_id, message_id, step_number);

-- Tries of LLM calls without a reply, each with its reason. A step keeps its newest tries: slot is number modulo the number of kept
-- tries. number: the tries of the step without a reply, counted from 1. generation: the claim of the try. model: `provider/model`.
-- is_final: no further try follows. retry_after_ms: the pause before the next try; NULL when the engine decides.
CREATE TABLE call_tries (
    agent_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id) ON DELETE CASCADE,
    step BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    number BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    worker_id TEXT COLLATE "C" NOT NULL,
    code TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    is_final BOOLEAN NOT NULL,
    retry_after_ms BIGINT,
    started_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (agent_execution_id, step, slot)
);

-- kind: who runs the tool, '' for a worker or 'client'. approval: '' without an approval, else pending, approved, denied, declined,
-- expired or cancelled. input_hash binds an approval to the tool and to the input that the approver saw.
-- claimant: the last claimant of the tool execution, who may ask again after a lost answer.
-- definition_hash: the definition that the call was made for; '' for any definition. approval_rule: a `CallRule`.
-- title_template: the template of the call's title for people; '' without a title.
-- question: an `AskedQuestion`, the last question of the tool to a person; NULL without a question and after the end.
-- inbox_tenant_id: the tenant in whose inbox of approvals the call is; '' for a call that was made without an approval.
CREATE TABLE tool_execution_records (
    conversation_id TEXT COLLATE "C" NOT NULL,
    execution_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    agent_execution_id TEXT COLLATE "C" NOT NULL REFERENCES agent_executions (id),
    step BIGINT NOT NULL,
    call_index BIGINT NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    tool_name TEXT NOT NULL,
    effect TEXT NOT NULL,
    timeout_ms BIGINT NOT NULL,
    status TEXT NOT NULL,
    attempt BIGINT NOT NULL DEFAULT 0,
    is_error BOOLEAN NOT NULL,
    duration_ms BIGINT NOT NULL,
    observed_sequence BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    signatures JSON NOT NULL,
    tool_input JSON NOT NULL,
    question JSON,
    events JSON NOT NULL,
    result JSON,
    full_result JSON,
    kind TEXT COLLATE "C" NOT NULL,
    approval TEXT COLLATE "C" NOT NULL,
    input_hash TEXT COLLATE "C" NOT NULL,
    expires_at TIMESTAMPTZ,
    claimant TEXT COLLATE "C" NOT NULL DEFAULT '',
    definition_hash TEXT COLLATE "C" NOT NULL,
    approval_rule JSON NOT NULL,
    title_template TEXT NOT NULL,
    inbox_tenant_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (conversation_id, execution_id),
    UNIQUE (conversation_id, call_id),
    UNIQUE (agent_execution_id, step, call_index)
);
CREATE INDEX tool_execution_records_open ON tool_execution_records (agent_execution_id, step, call_index)
    WHERE observed_sequence IS NULL;
-- For the calls that wait for a person or a client.
CREATE INDEX tool_execution_records_waiting ON tool_execution_records (conversation_id, created_at, call_index)
    WHERE status = 'pending' AND (approval = 'pending' OR kind = 'client');
-- For the number of calls of every tenant that wait for approvals, the oldest first.
CREATE INDEX tool_execution_records_approvals ON tool_execution_records (created_at)
    WHERE status = 'pending' AND approval = 'pending';
-- For the inbox of approvals of a tenant, the nearest deadline first.
CREATE INDEX tool_execution_records_inbox ON tool_execution_records (inbox_tenant_id, expires_at, execution_id)
    WHERE status = 'pending' AND approval = 'pending';
CREATE VIEW waiting_calls AS
SELECT * FROM tool_execution_records WHERE status = 'pending' AND (approval = 'pending' OR kind = 'client');
-- The conversations with the work that goes on in each.
CREATE VIEW conversations_at_work AS
SELECT
    conversations.*,
    -- `ORDER BY` makes PostgreSQL look up the partial index. Otherwise PostgreSQL reads every running agent execution
    -- into a hash table.
    (SELECT e.id FROM agent_executions e
     WHERE e.conversation_id = conversations.id AND e.status = 'running'
     ORDER BY e.started_at
     LIMIT 1) IS NOT NULL AS is_running,
    (SELECT m.id FROM messages m
     WHERE m.conversation_id = conversations.id AND m.status = 'queued'
     ORDER BY m.created_at, m.id
     LIMIT 1) IS NOT NULL AS has_queued,
    (SELECT COUNT(*) FROM waiting_calls r
     WHERE r.conversation_id = conversations.id AND r.approval = 'pending') AS waiting_approvals,
    (SELECT COUNT(*) FROM waiting_calls r
     WHERE r.conversation_id = conversations.id AND r.approval <> 'pending') AS waiting_client_tools
FROM conversations;

-- Tools that run without further approvals in a conversation. definition_hash: the definition of the grant; '' for an unknown
-- definition.
CREATE TABLE tool_grants (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id),
    tool_name TEXT COLLATE "C" NOT NULL,
    granted_at TIMESTAMPTZ NOT NULL,
    definition_hash TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation_id, tool_name)
);

-- The answers to approvals that gateways have passed on. answered_by: the approver as the gateway authenticated them; '' where the
-- gateway asks for no credential. An answer without a row came through the engine. sequence_number: the order of the answers to a
-- call; the newest answer counts. answer: a `ResolveApproval`. is_saved: true for the answer that the turn has stored.
CREATE TABLE approval_answers (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    execution_id TEXT COLLATE "C" NOT NULL,
    answer_id TEXT COLLATE "C" NOT NULL,
    answered_by TEXT COLLATE "C" NOT NULL,
    answered_at TIMESTAMPTZ NOT NULL,
    sequence_number BIGINT NOT NULL,
    answer JSON NOT NULL,
    is_saved BOOLEAN NOT NULL,
    PRIMARY KEY (conversation_id, execution_id, answer_id)
);

-- The client that runs a call of a client tool. Until expires_at no other client may begin the call. claims: the number of clients
-- that have begun the call. A call without a claim has no row.
CREATE TABLE client_tool_claims (
    conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    execution_id TEXT COLLATE "C" NOT NULL,
    claimant TEXT COLLATE "C" NOT NULL,
    claims INTEGER NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversation_id, execution_id)
);

-- Plan ids are made by a tool, so they are unique in their conversation only.
CREATE TABLE work_plans (
    conversation_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    steps JSON NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversation_id, id)
);

-- The begin of a thread's context. Of the messages up to through_sequence, the model gets only kept_message_ids, and summary stands
-- for the others. The newest cut of a thread counts. thread is as in messages.
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

-- The newest turn of a conversation with a budget: its limits, and the sums of the turn and of the conversation. reserved_*: the
-- most that running calls may still take, whose answers are not stored.
CREATE TABLE conversation_budgets (
    conversation_id TEXT COLLATE "C" PRIMARY KEY,
    turn_id TEXT COLLATE "C" NOT NULL,
    tenant_id TEXT COLLATE "C" NOT NULL,
    max_steps BIGINT,
    max_tokens BIGINT,
    max_nano BIGINT,
    max_conversation_tokens BIGINT,
    max_conversation_nano BIGINT,
    max_day_tokens BIGINT,
    max_day_nano BIGINT,
    turn_steps BIGINT NOT NULL DEFAULT 0,
    turn_tokens BIGINT NOT NULL DEFAULT 0,
    turn_nano BIGINT NOT NULL DEFAULT 0,
    conversation_tokens BIGINT NOT NULL DEFAULT 0,
    conversation_nano BIGINT NOT NULL DEFAULT 0,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    reserved_nano BIGINT NOT NULL DEFAULT 0
);

-- The usage of a tenant on a day in UTC, by model and agent. The rows outlive their conversations. A day of a model and an agent
-- has several rows (slots), so that the turns of a tenant do not wait for each other.
CREATE TABLE usage_days (
    tenant_id TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    cut_calls BIGINT NOT NULL,
    cut_tokens BIGINT NOT NULL,
    cut_nano BIGINT NOT NULL,
    estimated_calls BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, day, model, agent, slot)
);

-- The tool calls of a tenant on a day in UTC, by tool and agent. The end of an agent execution adds its calls. The rows outlive
-- their conversations. duration_ms: the time of the calls together. slot: as in usage_days.
CREATE TABLE tool_usage_days (
    tenant_id TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    failed_calls BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, day, tool, agent, slot)
);

-- Images and files. content has the bytes, unless the bytes are in an object store under object_key. A blob belongs to the
-- conversation whose message or tool result names the blob, and to the conversation's owner; before that to the uploader.
-- upload_key: the client's key of the upload.
CREATE TABLE blobs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE CASCADE,
    upload_key TEXT COLLATE "C",
    media_type TEXT NOT NULL,
    file_name TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    object_key TEXT COLLATE "C",
    content BYTEA,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX blobs_by_conversation ON blobs (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX blobs_unattached ON blobs (tenant_id, created_at) WHERE conversation_id IS NULL;
CREATE UNIQUE INDEX blobs_by_upload ON blobs (tenant_id, owner_id, upload_key) WHERE upload_key IS NOT NULL;

-- Objects to remove from the object store after remove_after: the objects of removed blobs, and the objects that an upload was
-- about to write.
CREATE TABLE removed_objects (
    object_key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    remove_after TIMESTAMPTZ NOT NULL
);
CREATE INDEX removed_objects_due ON removed_objects (remove_after);

-- The trace of a turn or a sub-agent, while traces are exported; without an export there are no rows. trace_parent and trace_state
-- are the headers of W3C Trace Context that name the span above the agent's. The worker that begins the agent execution adds agent
-- and begun_at.
CREATE TABLE trace_contexts (
    conversation_id TEXT COLLATE "C" NOT NULL,
    agent_execution_id TEXT COLLATE "C" NOT NULL,
    trace_parent TEXT NOT NULL,
    trace_state TEXT NOT NULL,
    agent TEXT,
    begun_at TIMESTAMPTZ,
    PRIMARY KEY (conversation_id, agent_execution_id)
);

-- Conversations with a waiting message or a running turn in which nothing happens, and the time at which a gateway looks at them.
CREATE TABLE turn_checks (
    conversation_id TEXT COLLATE "C" PRIMARY KEY,
    due_at TIMESTAMPTZ NOT NULL,
    starts BIGINT NOT NULL DEFAULT 0,
    last_sequence BIGINT NOT NULL DEFAULT 0,
    signalled_until TIMESTAMPTZ
);
CREATE INDEX turn_checks_due ON turn_checks (due_at, conversation_id);
-- One row: the time of the last search for such conversations. The gateway that changes the row does the search. walked_to: the
-- search goes on after this conversation; empty when the search begins anew.
CREATE TABLE reconciler (
    id BIGINT PRIMARY KEY,
    asked_at TIMESTAMPTZ NOT NULL,
    walked_to TEXT COLLATE "C" NOT NULL
);
INSERT INTO reconciler (id, asked_at, walked_to) VALUES (1, 'epoch', '');

-- Living worker processes. A worker raises renewals again and again, and gateways see when the number stands still. identity: the
-- engine's name of the worker. takes: how often gateways have taken the lease since its last renewal. is_ended: the worker has
-- stopped in order. Its lease stays until a gateway has looked for the work that the engine gave the worker as it stopped.
-- left_out_tools: the tools that the worker leaves out of requests, as a JSON list of `LeftOutTool`.
CREATE TABLE worker_leases (
    id TEXT COLLATE "C" PRIMARY KEY,
    identity TEXT NOT NULL,
    lease_ms BIGINT NOT NULL,
    renewals BIGINT NOT NULL DEFAULT 0,
    takes BIGINT NOT NULL DEFAULT 0,
    is_ended BOOLEAN NOT NULL DEFAULT FALSE,
    left_out_tools TEXT NOT NULL DEFAULT '[]'
);

-- Credentials of callers: API keys, and the browser sessions opened with them. secret_hash is the SHA-256 of the secret; the secret
-- itself is nowhere. parent_id: the key that opened the session. Revoking the key ends the session.
-- made_by_key: the key that made the key, also through a session. made_by_subject: the subject of the token that made the key.
-- signed_in_at: when the token behind a session was issued; for another row the time of its creation.
CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C" REFERENCES api_keys (id),
    secret_hash BYTEA NOT NULL,
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C",
    scopes TEXT NOT NULL,
    name TEXT NOT NULL,
    made_by_key TEXT COLLATE "C",
    made_by_subject TEXT COLLATE "C",
    signed_in_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ
);
CREATE INDEX api_keys_by_kind ON api_keys (kind, id);
-- For the foreign key, which PostgreSQL checks when ended sessions are removed.
CREATE INDEX api_keys_by_parent ON api_keys (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX api_keys_by_maker ON api_keys (made_by_key) WHERE made_by_key IS NOT NULL;
CREATE INDEX api_keys_ended_sessions ON api_keys (expires_at) WHERE kind = 'session';

-- Owners with refused credentials. Tokens and sessions of sign-ins up to ended_at are refused. is_refused: every credential of the
-- owner is refused, until an admin allows the owner. Both columns leave out credentials with admin:all. For these credentials,
-- admins with admin:all set all_ended_at and is_all_refused, besides the first two columns. After keep_until, every sign-in up to
-- ended_at has expired, and the row of an owner who is not refused may be removed.
CREATE TABLE owner_refusals (
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    is_refused BOOLEAN NOT NULL,
    ended_at TIMESTAMPTZ NOT NULL,
    is_all_refused BOOLEAN NOT NULL,
    all_ended_at TIMESTAMPTZ,
    keep_until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, owner_id)
);
CREATE INDEX owner_refusals_over ON owner_refusals (keep_until) WHERE NOT is_refused;

-- Consents of people: a tool server may be used in the name of the owner. id: made anew with each consent. sealed: the tokens,
-- encrypted with a key of [codec]. version: rises with each renewal of the tokens. renewed_until: a worker renews the tokens until
-- then, and other workers wait.
CREATE TABLE tool_consents (
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    sealed BYTEA NOT NULL,
    version BIGINT NOT NULL,
    renewed_until TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, server)
);

-- Consents that people have begun and not ended. state_hash: the SHA-256 of the parameter `state` in the browser's way to the
-- authorization server; the state itself is nowhere. sealed: what the gateway needs to end the consent, encrypted with a key of
-- [codec].
CREATE TABLE consent_requests (
    state_hash BYTEA NOT NULL PRIMARY KEY,
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    sealed BYTEA NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX consent_requests_of_owner ON consent_requests (tenant_id, owner_id, expires_at);
CREATE INDEX consent_requests_over ON consent_requests (expires_at);

-- The audit trail: who did what, when, from where, and with which outcome. Rows refer to nothing that can be removed, so a row
-- outlives its subject. An entry stays as it was written: nobody may change it, and nobody may remove it before keep_until.
-- tenant_id is NULL where the tenant is unknown. details is JSON.
CREATE TABLE audit_events (
    id BIGINT PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    keep_until TIMESTAMPTZ NOT NULL,
    tenant_id TEXT COLLATE "C",
    actor_kind TEXT COLLATE "C" NOT NULL,
    actor_id TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    target_kind TEXT COLLATE "C" NOT NULL,
    target_id TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    details TEXT NOT NULL
);
CREATE INDEX audit_events_by_tenant ON audit_events (tenant_id, id);
CREATE INDEX audit_events_by_action ON audit_events (action, id);
CREATE INDEX audit_events_by_time ON audit_events (at);

-- Numbers the entries without a gap. Transactions append one after the other, each until its commit. So no smaller number becomes
-- visible after a larger number, and a reader that goes on from a number misses nothing.
CREATE FUNCTION audit_events_append() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(418581342580);
    NEW.id := COALESCE((SELECT MAX(id) FROM audit_events), 0) + 1;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_events_append BEFORE INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_append();

CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry of the audit trail stays as it was written until its retention is over';
END
$$;
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_refuse();
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
    FOR EACH ROW WHEN (OLD.keep_until > clock_timestamp()) EXECUTE FUNCTION audit_events_refuse();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_events_refuse();

-- One row: the version of the oldest Everturn that works with these tables. A migration that takes away columns or tables of
-- earlier versions raises oldest_version.
CREATE TABLE schema_range (id BIGINT PRIMARY KEY, oldest_version BIGINT NOT NULL);
INSERT INTO schema_range (id, oldest_version) VALUES (1, 306);
