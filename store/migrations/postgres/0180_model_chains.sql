-- Where the step that is called last is in the chain of its agent's models, as JSON: its step, the place of the model that is
-- called next, how many calls of it have failed, and which models the step has given up. NULL: no call has failed.
ALTER TABLE agent_executions ADD COLUMN model_chain JSONB;
-- The model that the reservation is for, when it is not the agent's own: `provider/model`.
ALTER TABLE agent_executions ADD COLUMN reserved_model TEXT;
