-- Selects the tools that living workers leave out of requests, a list of each worker. The table has few rows.
-- Index: key of worker_leases
--
-- :none text  The empty list.
-- :row_limit bigint
SELECT left_out_tools
FROM worker_leases
WHERE left_out_tools <> :none AND NOT is_ended
ORDER BY id
LIMIT :row_limit
