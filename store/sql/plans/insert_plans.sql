-- Inserts work plans. An existing plan gets the new title and steps.
-- Index: key of work_plans
-- rows: many
--
-- :conversation_id text
-- :plan_id text
-- :message_id text
-- :title text
-- :steps json
-- :created_at timestamp
-- :updated_at timestamp
INSERT INTO work_plans (conversation_id, id, message_id, title, steps, created_at, updated_at)
VALUES (:conversation_id, :plan_id, :message_id, :title, :steps, :created_at, :updated_at)
ON CONFLICT (conversation_id, id) DO UPDATE
SET title = excluded.title, steps = excluded.steps, updated_at = excluded.updated_at
