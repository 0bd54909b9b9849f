-- Ends a statement of several parts without a guard. A statement of writing parts needs an end that returns rows.
-- Index: none: no table
--
SELECT 1
