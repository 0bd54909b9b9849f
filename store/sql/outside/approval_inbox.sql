-- Selects a page of a tenant's calls that wait for an approval, the nearest deadline first, up to a limit of rows and a
-- limit of bytes. An approver gets the calls of their own conversations, and the calls that need another person. The
-- rows carry their rank (`RankedRow`), with one row beyond the limit if more rows exist.
-- Index: tool_execution_records_inbox, key of conversations, key of agent_executions
--
-- :tenant_id text
-- :approver text?  The owner whose inbox is read; NULL for every call of the tenant.
-- :after_expires_at timestamp?  NULL for the first page.
-- :after_execution_id text
-- :by_other text  The rule of calls that need another person.
-- :row_limit bigint
-- :most_bytes bigint
-- :now timestamp
SELECT *
FROM (
    SELECT
        found.*,
        ROW_NUMBER() OVER in_order AS page_rank,
        SUM(bytes) OVER in_order AS total_bytes
    FROM (
        SELECT
            t.conversation_id, (SELECT e.agent FROM agent_executions e WHERE e.id = t.agent_execution_id) AS agent,
            t.message_id, t.agent_execution_id, t.created_at, t.expires_at, FALSE AS is_expired, t.execution_id,
            t.step, t.call_index, t.call_id, t.tool_name, t.effect, t.timeout_ms, t.status, t.attempt, t.is_error,
            t.duration_ms, t.observed_sequence, t.kind, t.approval, t.input_hash, t.definition_hash, t.approval_rule,
            t.title_template, t.signatures, t.tool_input, t.question, t.events, t.result,
            CAST(OCTET_LENGTH(CAST(t.tool_input AS TEXT))
                + OCTET_LENGTH(COALESCE(CAST(t.question AS TEXT), '')) AS INTEGER) AS bytes
        FROM tool_execution_records t
        JOIN conversations c ON c.id = t.conversation_id AND c.tenant_id = :tenant_id
        WHERE t.inbox_tenant_id = :tenant_id AND t.status = 'pending' AND t.approval = 'pending'
            AND t.expires_at > CLOCK(:now)
            AND (CAST(:after_expires_at AS TEXT) IS NULL
                OR (t.expires_at, t.execution_id) > (:after_expires_at, :after_execution_id))
            AND (
                CAST(:approver AS TEXT) IS NULL OR t.approval_rule ->> 'by' = :by_other
                OR c.owner_id = :approver
            )
        ORDER BY t.expires_at, t.execution_id
        LIMIT :row_limit
    ) AS found
    WINDOW in_order AS (ORDER BY expires_at, execution_id ROWS UNBOUNDED PRECEDING)
) AS measured
WHERE page_rank <= 2 OR total_bytes - bytes <= :most_bytes
