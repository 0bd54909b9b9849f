-- Notes an object to be removed at a time.
-- Index: key of removed_objects
--
-- :object_key text
-- :remove_after timestamp
INSERT INTO removed_objects (object_key, remove_after)
VALUES (:object_key, :remove_after)
ON CONFLICT (object_key) DO UPDATE SET remove_after = excluded.remove_after
