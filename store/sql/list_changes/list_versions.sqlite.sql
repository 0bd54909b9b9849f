-- Selects the version of the list of each caller, in the order of the callers. A list without a noted change has the
-- version 0.
-- Index: key of list_changes
--
-- :callers text  JSON: a list of callers, each a list of the tenant and of the owner or null.
SELECT
    k.key AS rank,
    (SELECT COALESCE(SUM(l.version), 0) FROM list_changes l
     WHERE l.tenant_id = json_extract(k.value, '$[0]')
         AND l.owner_id = COALESCE(json_extract(k.value, '$[1]'), '')) AS version
FROM json_each(:callers) AS k
ORDER BY rank
