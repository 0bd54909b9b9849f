-- Selects the most connections of the role at the same time, and the unused connections of the server. A superuser may
-- also use the reserved connections, and has no other limit.
-- Index: none: catalogues of the server, read at a start
--
SELECT
    LEAST(
        server,
        CASE WHEN NOT rolsuper AND rolconnlimit >= 0 THEN rolconnlimit END,
        CASE WHEN NOT rolsuper AND datconnlimit >= 0 THEN datconnlimit END
    ) AS allowed,
    server - taken AS free
FROM (
    SELECT
        rolsuper,
        rolconnlimit,
        CAST(current_setting('max_connections') AS BIGINT)
            - CASE WHEN rolsuper THEN 0
              ELSE CAST(current_setting('superuser_reserved_connections') AS BIGINT)
                  + CAST(COALESCE(current_setting('reserved_connections', TRUE), '0') AS BIGINT)
              END AS server,
        (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS datconnlimit,
        (SELECT COUNT(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND pid <> pg_backend_pid()) AS taken
    FROM pg_roles
    WHERE rolname = session_user
) AS limits
