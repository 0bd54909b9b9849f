-- True when the file has a table of this name.
-- Index: none: the catalogue of the file, read at a start
--
-- :table text
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :table)
