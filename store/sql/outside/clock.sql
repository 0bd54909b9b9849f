-- Returns the time by the clock that ends the waits for the outside.
-- Index: none: no table
--
-- :now timestamp
SELECT CLOCK(:now) AS read_at
