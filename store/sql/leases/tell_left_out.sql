-- Stores the tools that a worker leaves out of requests. The statement changes no row when the worker has no lease.
-- Index: key of worker_leases
--
-- :worker_id text
-- :left_out_tools text  A JSON list of `LeftOutTool`.
UPDATE worker_leases
SET left_out_tools = :left_out_tools
WHERE id = :worker_id
