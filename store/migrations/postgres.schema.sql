CREATE FUNCTION public.audit_events_append() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(418581342580);
    NEW.id := COALESCE((SELECT MAX(id) FROM audit_events), 0) + 1;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.audit_events_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'an entry of the audit trail stays as it was written until its retention is over';
END
$$;
CREATE TABLE public.agent_definitions (
    hash text NOT NULL COLLATE pg_catalog."C",
    definition json NOT NULL
);
CREATE TABLE public.agent_execution_events (
    id text NOT NULL COLLATE pg_catalog."C",
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    event_type text NOT NULL,
    sequence_number bigint NOT NULL,
    batch_key text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    event_data json NOT NULL,
    data_bytes bigint NOT NULL
);
CREATE TABLE public.agent_executions (
    id text NOT NULL COLLATE pg_catalog."C",
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    parent_execution_id text COLLATE pg_catalog."C",
    root_execution_id text NOT NULL COLLATE pg_catalog."C",
    depth bigint NOT NULL,
    parent_tool_call_id text COLLATE pg_catalog."C",
    agent text NOT NULL,
    agent_hash text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    steps bigint DEFAULT 0 NOT NULL,
    error_code text,
    error_message text,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    called_step bigint DEFAULT '-1'::integer NOT NULL,
    step_calls bigint DEFAULT 0 NOT NULL,
    worker_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    background_response json,
    reserved_step bigint DEFAULT '-1'::integer NOT NULL,
    reserved_tokens bigint DEFAULT 0 NOT NULL,
    reserved_nano bigint DEFAULT 0 NOT NULL,
    model_chain json,
    reserved_model text,
    settled_generation bigint DEFAULT 0 NOT NULL,
    cut_calls bigint DEFAULT 0 NOT NULL,
    cut_tokens bigint DEFAULT 0 NOT NULL,
    cut_nano bigint DEFAULT 0 NOT NULL,
    after_turn_due timestamp with time zone,
    after_turn_queue text COLLATE pg_catalog."C"
);
CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text COLLATE pg_catalog."C",
    scopes text NOT NULL,
    name text NOT NULL,
    made_by_key text COLLATE pg_catalog."C",
    made_by_subject text COLLATE pg_catalog."C",
    signed_in_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone
);
CREATE TABLE public.approval_answers (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    execution_id text NOT NULL COLLATE pg_catalog."C",
    answer_id text NOT NULL COLLATE pg_catalog."C",
    answered_by text NOT NULL COLLATE pg_catalog."C",
    answered_at timestamp with time zone NOT NULL,
    sequence_number bigint NOT NULL,
    answer json NOT NULL,
    is_saved boolean NOT NULL
);
CREATE TABLE public.audit_events (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    keep_until timestamp with time zone NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    target_kind text NOT NULL COLLATE pg_catalog."C",
    target_id text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    details text NOT NULL
);
CREATE TABLE public.blobs (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    conversation_id text COLLATE pg_catalog."C",
    upload_key text COLLATE pg_catalog."C",
    media_type text NOT NULL,
    file_name text NOT NULL,
    bytes bigint NOT NULL,
    sha256 text NOT NULL,
    object_key text COLLATE pg_catalog."C",
    content bytea,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.call_tries (
    agent_execution_id text NOT NULL COLLATE pg_catalog."C",
    step bigint NOT NULL,
    slot bigint NOT NULL,
    number bigint NOT NULL,
    generation bigint NOT NULL,
    model text NOT NULL COLLATE pg_catalog."C",
    worker_id text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    is_final boolean NOT NULL,
    retry_after_ms bigint,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL
);
CREATE TABLE public.client_tool_claims (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    execution_id text NOT NULL COLLATE pg_catalog."C",
    claimant text NOT NULL COLLATE pg_catalog."C",
    claims integer NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.consent_requests (
    state_hash bytea NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.context_cuts (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    thread text NOT NULL COLLATE pg_catalog."C",
    through_sequence bigint NOT NULL,
    agent_execution_id text NOT NULL COLLATE pg_catalog."C",
    step bigint NOT NULL,
    summary text NOT NULL,
    kept_message_ids text[] NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.conversation_budgets (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    turn_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    max_steps bigint,
    max_tokens bigint,
    max_nano bigint,
    max_conversation_tokens bigint,
    max_conversation_nano bigint,
    max_day_tokens bigint,
    max_day_nano bigint,
    turn_steps bigint DEFAULT 0 NOT NULL,
    turn_tokens bigint DEFAULT 0 NOT NULL,
    turn_nano bigint DEFAULT 0 NOT NULL,
    conversation_tokens bigint DEFAULT 0 NOT NULL,
    conversation_nano bigint DEFAULT 0 NOT NULL,
    reserved_tokens bigint DEFAULT 0 NOT NULL,
    reserved_nano bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.conversations (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL,
    title text NOT NULL,
    message_count bigint DEFAULT 0 NOT NULL,
    last_sequence bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    active_at timestamp with time zone NOT NULL,
    owner_id text NOT NULL COLLATE pg_catalog."C",
    log_id text NOT NULL COLLATE pg_catalog."C",
    run_epoch bigint DEFAULT 0 NOT NULL,
    granted_epoch bigint DEFAULT 0 NOT NULL,
    spent_input bigint DEFAULT 0 NOT NULL,
    spent_output bigint DEFAULT 0 NOT NULL,
    spent_cached bigint DEFAULT 0 NOT NULL,
    spent_cache_write bigint DEFAULT 0 NOT NULL,
    spent_reasoning bigint DEFAULT 0 NOT NULL,
    spent_nano bigint,
    model text DEFAULT ''::text NOT NULL,
    metadata json DEFAULT '{}'::json NOT NULL,
    spent_estimated bigint DEFAULT 0 NOT NULL,
    spent_cut_calls bigint DEFAULT 0 NOT NULL,
    spent_cut_tokens bigint DEFAULT 0 NOT NULL,
    spent_cut_nano bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80');
CREATE TABLE public.messages (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    status text NOT NULL,
    client_message_id text COLLATE pg_catalog."C",
    agent_execution_id text COLLATE pg_catalog."C",
    step bigint,
    sequence_number bigint,
    created_at timestamp with time zone NOT NULL,
    content text NOT NULL,
    tool_calls json NOT NULL,
    tool_results json NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    thread text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    on_busy text DEFAULT ''::text NOT NULL,
    attachments json DEFAULT '[]'::json NOT NULL,
    sent_by text COLLATE pg_catalog."C",
    model text,
    cancel_reason text,
    revision bigint DEFAULT 0 NOT NULL,
    CONSTRAINT messages_check CHECK (((status = 'queued'::text) = (sequence_number IS NULL)))
);
CREATE TABLE public.tool_execution_records (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    execution_id text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    agent_execution_id text NOT NULL COLLATE pg_catalog."C",
    step bigint NOT NULL,
    call_index bigint NOT NULL,
    call_id text NOT NULL COLLATE pg_catalog."C",
    tool_name text NOT NULL,
    effect text NOT NULL,
    timeout_ms bigint NOT NULL,
    status text NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    is_error boolean NOT NULL,
    duration_ms bigint NOT NULL,
    observed_sequence bigint,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    signatures json NOT NULL,
    tool_input json NOT NULL,
    question json,
    events json NOT NULL,
    result json,
    full_result json,
    kind text NOT NULL COLLATE pg_catalog."C",
    approval text NOT NULL COLLATE pg_catalog."C",
    input_hash text NOT NULL COLLATE pg_catalog."C",
    expires_at timestamp with time zone,
    claimant text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    definition_hash text NOT NULL COLLATE pg_catalog."C",
    approval_rule json NOT NULL,
    title_template text NOT NULL,
    inbox_tenant_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE VIEW public.waiting_calls AS
 SELECT tool_execution_records.conversation_id,
    tool_execution_records.execution_id,
    tool_execution_records.message_id,
    tool_execution_records.agent_execution_id,
    tool_execution_records.step,
    tool_execution_records.call_index,
    tool_execution_records.call_id,
    tool_execution_records.tool_name,
    tool_execution_records.effect,
    tool_execution_records.timeout_ms,
    tool_execution_records.status,
    tool_execution_records.attempt,
    tool_execution_records.is_error,
    tool_execution_records.duration_ms,
    tool_execution_records.observed_sequence,
    tool_execution_records.created_at,
    tool_execution_records.started_at,
    tool_execution_records.finished_at,
    tool_execution_records.signatures,
    tool_execution_records.tool_input,
    tool_execution_records.question,
    tool_execution_records.events,
    tool_execution_records.result,
    tool_execution_records.full_result,
    tool_execution_records.kind,
    tool_execution_records.approval,
    tool_execution_records.input_hash,
    tool_execution_records.expires_at,
    tool_execution_records.claimant,
    tool_execution_records.definition_hash,
    tool_execution_records.approval_rule,
    tool_execution_records.title_template,
    tool_execution_records.inbox_tenant_id
   FROM public.tool_execution_records
  WHERE ((tool_execution_records.status = 'pending'::text) AND ((tool_execution_records.approval = 'pending'::text) OR (tool_execution_records.kind = 'client'::text)));
CREATE VIEW public.conversations_at_work AS
 SELECT conversations.id,
    conversations.tenant_id,
    conversations.agent,
    conversations.title,
    conversations.message_count,
    conversations.last_sequence,
    conversations.created_at,
    conversations.updated_at,
    conversations.active_at,
    conversations.owner_id,
    conversations.log_id,
    conversations.run_epoch,
    conversations.granted_epoch,
    conversations.spent_input,
    conversations.spent_output,
    conversations.spent_cached,
    conversations.spent_cache_write,
    conversations.spent_reasoning,
    conversations.spent_nano,
    conversations.model,
    conversations.metadata,
    conversations.spent_estimated,
    conversations.spent_cut_calls,
    conversations.spent_cut_tokens,
    conversations.spent_cut_nano,
    (( SELECT e.id
           FROM public.agent_executions e
          WHERE ((e.conversation_id = conversations.id) AND (e.status = 'running'::text))
          ORDER BY e.started_at
         LIMIT 1) IS NOT NULL) AS is_running,
    (( SELECT m.id
           FROM public.messages m
          WHERE ((m.conversation_id = conversations.id) AND (m.status = 'queued'::text))
          ORDER BY m.created_at, m.id
         LIMIT 1) IS NOT NULL) AS has_queued,
    ( SELECT count(*) AS count
           FROM public.waiting_calls r
          WHERE ((r.conversation_id = conversations.id) AND (r.approval = 'pending'::text))) AS waiting_approvals,
    ( SELECT count(*) AS count
           FROM public.waiting_calls r
          WHERE ((r.conversation_id = conversations.id) AND (r.approval <> 'pending'::text))) AS waiting_client_tools
   FROM public.conversations;
CREATE TABLE public.deleted_conversations (
    id text NOT NULL COLLATE pg_catalog."C",
    deleted_at timestamp with time zone NOT NULL
);
CREATE TABLE public.execution_checkpoints (
    id text NOT NULL COLLATE pg_catalog."C",
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    agent_execution_id text NOT NULL COLLATE pg_catalog."C",
    checkpoint_type text NOT NULL COLLATE pg_catalog."C",
    execution_id text NOT NULL COLLATE pg_catalog."C",
    step_number bigint NOT NULL,
    generation bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    execution_state json NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL,
    cache_write_tokens bigint DEFAULT 0 NOT NULL,
    reasoning_tokens bigint DEFAULT 0 NOT NULL,
    cost_nano bigint,
    estimated_calls bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.list_changes (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    slot bigint NOT NULL,
    version bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.owner_refusals (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    is_refused boolean NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    is_all_refused boolean NOT NULL,
    all_ended_at timestamp with time zone,
    keep_until timestamp with time zone NOT NULL
);
CREATE TABLE public.reconciler (
    id bigint NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    walked_to text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.removed_objects (
    object_key text NOT NULL COLLATE pg_catalog."C",
    remove_after timestamp with time zone NOT NULL
);
CREATE VIEW public.running_turns AS
 SELECT agent_executions.id,
    agent_executions.conversation_id,
    agent_executions.tenant_id,
    agent_executions.message_id,
    agent_executions.status,
    agent_executions.steps,
    agent_executions.agent_hash,
    agent_executions.started_at
   FROM public.agent_executions
  WHERE ((agent_executions.status = 'running'::text) AND (agent_executions.parent_execution_id IS NULL));
CREATE TABLE public.schema_range (
    id bigint NOT NULL,
    oldest_version bigint NOT NULL
);
CREATE TABLE public.tool_consents (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL,
    version bigint NOT NULL,
    renewed_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.tool_grants (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    tool_name text NOT NULL COLLATE pg_catalog."C",
    granted_at timestamp with time zone NOT NULL,
    definition_hash text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.tool_usage_days (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    day text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL COLLATE pg_catalog."C",
    slot bigint NOT NULL,
    calls bigint NOT NULL,
    failed_calls bigint NOT NULL,
    duration_ms bigint NOT NULL
);
CREATE TABLE public.trace_contexts (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    agent_execution_id text NOT NULL COLLATE pg_catalog."C",
    trace_parent text NOT NULL,
    trace_state text NOT NULL,
    agent text,
    begun_at timestamp with time zone
);
CREATE TABLE public.turn_checks (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    due_at timestamp with time zone NOT NULL,
    starts bigint DEFAULT 0 NOT NULL,
    last_sequence bigint DEFAULT 0 NOT NULL,
    signalled_until timestamp with time zone
);
CREATE TABLE public.usage_days (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    day text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL COLLATE pg_catalog."C",
    slot bigint NOT NULL,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_nano bigint NOT NULL,
    cut_calls bigint NOT NULL,
    cut_tokens bigint NOT NULL,
    cut_nano bigint NOT NULL,
    estimated_calls bigint NOT NULL
);
CREATE TABLE public.work_plans (
    conversation_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    steps json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);
CREATE TABLE public.worker_leases (
    id text NOT NULL COLLATE pg_catalog."C",
    identity text NOT NULL,
    lease_ms bigint NOT NULL,
    renewals bigint DEFAULT 0 NOT NULL,
    takes bigint DEFAULT 0 NOT NULL,
    is_ended boolean DEFAULT false NOT NULL,
    left_out_tools text DEFAULT '[]'::text NOT NULL
);
ALTER TABLE ONLY public.agent_definitions
    ADD CONSTRAINT agent_definitions_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.agent_execution_events
    ADD CONSTRAINT agent_execution_events_conversation_id_sequence_number_key UNIQUE (conversation_id, sequence_number);
ALTER TABLE ONLY public.agent_execution_events
    ADD CONSTRAINT agent_execution_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agent_executions
    ADD CONSTRAINT agent_executions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.approval_answers
    ADD CONSTRAINT approval_answers_pkey PRIMARY KEY (conversation_id, execution_id, answer_id);
ALTER TABLE ONLY public.audit_events
    ADD CONSTRAINT audit_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT blobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.call_tries
    ADD CONSTRAINT call_tries_pkey PRIMARY KEY (agent_execution_id, step, slot);
ALTER TABLE ONLY public.client_tool_claims
    ADD CONSTRAINT client_tool_claims_pkey PRIMARY KEY (conversation_id, execution_id);
ALTER TABLE ONLY public.consent_requests
    ADD CONSTRAINT consent_requests_pkey PRIMARY KEY (state_hash);
ALTER TABLE ONLY public.context_cuts
    ADD CONSTRAINT context_cuts_pkey PRIMARY KEY (conversation_id, thread, through_sequence);
ALTER TABLE ONLY public.conversation_budgets
    ADD CONSTRAINT conversation_budgets_pkey PRIMARY KEY (conversation_id);
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.deleted_conversations
    ADD CONSTRAINT deleted_conversations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.execution_checkpoints
    ADD CONSTRAINT execution_checkpoints_agent_execution_id_step_number_checkp_key UNIQUE (agent_execution_id, step_number, checkpoint_type, execution_id);
ALTER TABLE ONLY public.execution_checkpoints
    ADD CONSTRAINT execution_checkpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.list_changes
    ADD CONSTRAINT list_changes_pkey PRIMARY KEY (tenant_id, owner_id, slot);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_conversation_id_client_message_id_key UNIQUE (conversation_id, client_message_id);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_conversation_id_sequence_number_key UNIQUE (conversation_id, sequence_number);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (conversation_id, id);
ALTER TABLE ONLY public.owner_refusals
    ADD CONSTRAINT owner_refusals_pkey PRIMARY KEY (tenant_id, owner_id);
ALTER TABLE ONLY public.reconciler
    ADD CONSTRAINT reconciler_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.removed_objects
    ADD CONSTRAINT removed_objects_pkey PRIMARY KEY (object_key);
ALTER TABLE ONLY public.schema_range
    ADD CONSTRAINT schema_range_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tool_consents
    ADD CONSTRAINT tool_consents_pkey PRIMARY KEY (tenant_id, owner_id, server);
ALTER TABLE ONLY public.tool_execution_records
    ADD CONSTRAINT tool_execution_records_agent_execution_id_step_call_index_key UNIQUE (agent_execution_id, step, call_index);
ALTER TABLE ONLY public.tool_execution_records
    ADD CONSTRAINT tool_execution_records_conversation_id_call_id_key UNIQUE (conversation_id, call_id);
ALTER TABLE ONLY public.tool_execution_records
    ADD CONSTRAINT tool_execution_records_pkey PRIMARY KEY (conversation_id, execution_id);
ALTER TABLE ONLY public.tool_grants
    ADD CONSTRAINT tool_grants_pkey PRIMARY KEY (conversation_id, tool_name);
ALTER TABLE ONLY public.tool_usage_days
    ADD CONSTRAINT tool_usage_days_pkey PRIMARY KEY (tenant_id, day, tool, agent, slot);
ALTER TABLE ONLY public.trace_contexts
    ADD CONSTRAINT trace_contexts_pkey PRIMARY KEY (conversation_id, agent_execution_id);
ALTER TABLE ONLY public.turn_checks
    ADD CONSTRAINT turn_checks_pkey PRIMARY KEY (conversation_id);
ALTER TABLE ONLY public.usage_days
    ADD CONSTRAINT usage_days_pkey PRIMARY KEY (tenant_id, day, model, agent, slot);
ALTER TABLE ONLY public.work_plans
    ADD CONSTRAINT work_plans_pkey PRIMARY KEY (conversation_id, id);
ALTER TABLE ONLY public.worker_leases
    ADD CONSTRAINT worker_leases_pkey PRIMARY KEY (id);
CREATE INDEX agent_executions_after_turn ON public.agent_executions USING btree (after_turn_due) WHERE (after_turn_due IS NOT NULL);
CREATE INDEX agent_executions_by_definition ON public.agent_executions USING btree (agent_hash);
CREATE INDEX agent_executions_by_message ON public.agent_executions USING btree (conversation_id, message_id);
CREATE INDEX agent_executions_by_parent ON public.agent_executions USING btree (parent_execution_id) WHERE (parent_execution_id IS NOT NULL);
CREATE INDEX agent_executions_by_root ON public.agent_executions USING btree (root_execution_id);
CREATE INDEX agent_executions_by_start ON public.agent_executions USING btree (conversation_id, started_at, id);
CREATE INDEX agent_executions_failed ON public.agent_executions USING btree (finished_at, id) WHERE (status = 'failed'::text);
CREATE INDEX agent_executions_failed_of_tenant ON public.agent_executions USING btree (tenant_id, finished_at, id) WHERE (status = 'failed'::text);
CREATE INDEX agent_executions_running ON public.agent_executions USING btree (conversation_id, started_at) WHERE (status = 'running'::text);
CREATE INDEX agent_executions_running_of_tenant ON public.agent_executions USING btree (tenant_id, conversation_id) WHERE ((status = 'running'::text) AND (parent_execution_id IS NULL));
CREATE INDEX api_keys_by_kind ON public.api_keys USING btree (kind, id);
CREATE INDEX api_keys_by_maker ON public.api_keys USING btree (made_by_key) WHERE (made_by_key IS NOT NULL);
CREATE INDEX api_keys_by_parent ON public.api_keys USING btree (parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX api_keys_ended_sessions ON public.api_keys USING btree (expires_at) WHERE (kind = 'session'::text);
CREATE INDEX audit_events_by_action ON public.audit_events USING btree (action, id);
CREATE INDEX audit_events_by_tenant ON public.audit_events USING btree (tenant_id, id);
CREATE INDEX audit_events_by_time ON public.audit_events USING btree (at);
CREATE INDEX blobs_by_conversation ON public.blobs USING btree (conversation_id) WHERE (conversation_id IS NOT NULL);
CREATE UNIQUE INDEX blobs_by_upload ON public.blobs USING btree (tenant_id, owner_id, upload_key) WHERE (upload_key IS NOT NULL);
CREATE INDEX blobs_unattached ON public.blobs USING btree (tenant_id, created_at) WHERE (conversation_id IS NULL);
CREATE INDEX consent_requests_of_owner ON public.consent_requests USING btree (tenant_id, owner_id, expires_at);
CREATE INDEX consent_requests_over ON public.consent_requests USING btree (expires_at);
CREATE INDEX conversations_by_owner ON public.conversations USING btree (tenant_id, owner_id, active_at DESC, id DESC);
CREATE INDEX conversations_by_tenant ON public.conversations USING btree (tenant_id, active_at DESC, id DESC);
CREATE INDEX deleted_conversations_by_age ON public.deleted_conversations USING btree (deleted_at);
CREATE INDEX execution_checkpoints_by_message ON public.execution_checkpoints USING btree (conversation_id, message_id, step_number);
CREATE INDEX messages_by_thread ON public.messages USING btree (conversation_id, thread, sequence_number);
CREATE INDEX messages_of_mcp ON public.messages USING btree (tenant_id, client_message_id) WHERE (substr(client_message_id, 1, 4) = 'mcp_'::text);
CREATE INDEX messages_of_mcp_by_age ON public.messages USING btree (tenant_id, created_at, id) WHERE (substr(client_message_id, 1, 4) = 'mcp_'::text);
CREATE INDEX messages_queued ON public.messages USING btree (conversation_id, created_at, id) WHERE (status = 'queued'::text);
CREATE INDEX messages_queued_of_tenant ON public.messages USING btree (tenant_id, conversation_id) WHERE (status = 'queued'::text);
CREATE INDEX owner_refusals_over ON public.owner_refusals USING btree (keep_until) WHERE (NOT is_refused);
CREATE INDEX removed_objects_due ON public.removed_objects USING btree (remove_after);
CREATE INDEX tool_execution_records_approvals ON public.tool_execution_records USING btree (created_at) WHERE ((status = 'pending'::text) AND (approval = 'pending'::text));
CREATE INDEX tool_execution_records_inbox ON public.tool_execution_records USING btree (inbox_tenant_id, expires_at, execution_id) WHERE ((status = 'pending'::text) AND (approval = 'pending'::text));
CREATE INDEX tool_execution_records_open ON public.tool_execution_records USING btree (agent_execution_id, step, call_index) WHERE (observed_sequence IS NULL);
CREATE INDEX tool_execution_records_waiting ON public.tool_execution_records USING btree (conversation_id, created_at, call_index) WHERE ((status = 'pending'::text) AND ((approval = 'pending'::text) OR (kind = 'client'::text)));
CREATE INDEX turn_checks_due ON public.turn_checks USING btree (due_at, conversation_id);
CREATE TRIGGER audit_events_append BEFORE INSERT ON public.audit_events FOR EACH ROW EXECUTE FUNCTION public.audit_events_append();
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON public.audit_events FOR EACH ROW WHEN ((old.keep_until > clock_timestamp())) EXECUTE FUNCTION public.audit_events_refuse();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION public.audit_events_refuse();
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON public.audit_events FOR EACH ROW EXECUTE FUNCTION public.audit_events_refuse();
ALTER TABLE ONLY public.agent_execution_events
    ADD CONSTRAINT agent_execution_events_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(id);
ALTER TABLE ONLY public.agent_executions
    ADD CONSTRAINT agent_executions_agent_hash_fkey FOREIGN KEY (agent_hash) REFERENCES public.agent_definitions(hash);
ALTER TABLE ONLY public.agent_executions
    ADD CONSTRAINT agent_executions_conversation_id_message_id_fkey FOREIGN KEY (conversation_id, message_id) REFERENCES public.messages(conversation_id, id);
ALTER TABLE ONLY public.agent_executions
    ADD CONSTRAINT agent_executions_parent_execution_id_fkey FOREIGN KEY (parent_execution_id) REFERENCES public.agent_executions(id);
ALTER TABLE ONLY public.agent_executions
    ADD CONSTRAINT agent_executions_root_execution_id_fkey FOREIGN KEY (root_execution_id) REFERENCES public.agent_executions(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.api_keys(id);
ALTER TABLE ONLY public.approval_answers
    ADD CONSTRAINT approval_answers_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT blobs_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.call_tries
    ADD CONSTRAINT call_tries_agent_execution_id_fkey FOREIGN KEY (agent_execution_id) REFERENCES public.agent_executions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.client_tool_claims
    ADD CONSTRAINT client_tool_claims_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.execution_checkpoints
    ADD CONSTRAINT execution_checkpoints_agent_execution_id_fkey FOREIGN KEY (agent_execution_id) REFERENCES public.agent_executions(id);
ALTER TABLE ONLY public.execution_checkpoints
    ADD CONSTRAINT execution_checkpoints_conversation_id_message_id_fkey FOREIGN KEY (conversation_id, message_id) REFERENCES public.messages(conversation_id, id);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(id);
ALTER TABLE ONLY public.tool_execution_records
    ADD CONSTRAINT tool_execution_records_agent_execution_id_fkey FOREIGN KEY (agent_execution_id) REFERENCES public.agent_executions(id);
ALTER TABLE ONLY public.tool_grants
    ADD CONSTRAINT tool_grants_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(id);
