-- Selects the time of the last update for each caller, in the order of the callers.
-- Index: conversations_by_tenant, conversations_by_owner
--
-- :callers text  JSON: a list of callers, each a list of the tenant and of the owner or null.
SELECT
    k.rank AS rank,
    CASE WHEN (k.caller ->> 1) IS NULL
    THEN (
        SELECT c.updated_at FROM conversations c
        WHERE c.tenant_id = (k.caller ->> 0)
        ORDER BY c.updated_at DESC, c.id DESC
        LIMIT 1
    )
    ELSE (
        SELECT c.updated_at FROM conversations c
        WHERE c.tenant_id = (k.caller ->> 0) AND c.owner_id = (k.caller ->> 1)
        ORDER BY c.updated_at DESC, c.id DESC
        LIMIT 1
    )
    END AS updated_at
FROM json_array_elements(CAST(:callers AS json)) WITH ORDINALITY AS k (caller, rank)
ORDER BY rank
