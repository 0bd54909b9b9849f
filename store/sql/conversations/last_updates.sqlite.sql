-- Selects the time of the last update for each caller, in the order of the callers.
-- Index: conversations_by_tenant, conversations_by_owner
--
-- :callers text  JSON: a list of callers, each a list of the tenant and of the owner or null.
SELECT
    k.key AS rank,
    CASE WHEN json_extract(k.value, '$[1]') IS NULL
    THEN (
        SELECT c.updated_at FROM conversations c
        WHERE c.tenant_id = json_extract(k.value, '$[0]')
        ORDER BY c.updated_at DESC, c.id DESC
        LIMIT 1
    )
    ELSE (
        SELECT c.updated_at FROM conversations c
        WHERE c.tenant_id = json_extract(k.value, '$[0]') AND c.owner_id = json_extract(k.value, '$[1]')
        ORDER BY c.updated_at DESC, c.id DESC
        LIMIT 1
    )
    END AS updated_at
FROM json_each(:callers) AS k
ORDER BY rank
