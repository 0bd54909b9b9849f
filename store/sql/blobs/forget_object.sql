-- Removes the note of an object.
-- Index: key of removed_objects
--
-- :object_key text
DELETE FROM removed_objects
WHERE object_key = :object_key
