-- Selects the version of the list of each caller, in the order of the callers. A list without a noted change has the
-- version 0.
-- Index: key of list_changes
--
-- :callers text  JSON: a list of callers, each a list of the tenant and of the owner or null.
SELECT
    k.rank AS rank,
    (SELECT CAST(COALESCE(SUM(l.version), 0) AS BIGINT) FROM list_changes l
     WHERE l.tenant_id = (k.caller ->> 0) AND l.owner_id = COALESCE(k.caller ->> 1, '')) AS version
FROM json_array_elements(CAST(:callers AS json)) WITH ORDINALITY AS k (caller, rank)
ORDER BY rank
