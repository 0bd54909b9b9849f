-- True for a replica, and for a server that reads its archive after a restore. Either server may become the primary.
-- Index: none: a function of the server
--
SELECT pg_is_in_recovery()
