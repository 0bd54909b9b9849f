-- Selects the session of the server that answers. The statement runs without preparation, because a pooler may lose
-- prepared statements.
-- Index: none: a function of the server
--
SELECT pg_backend_pid()
