-- Ends a statement of several parts with a guard. Without a row of the guard, the cast fails, and the statement writes
-- nothing. The server's log shows the sentence.
-- Index: none: the row of the guard
--
SELECT CAST(
    CASE COUNT(*) WHEN 0 THEN 'the conversation is not as it was read; it is saved under its lock now' ELSE '1' END
    AS BIGINT
)
FROM guard
