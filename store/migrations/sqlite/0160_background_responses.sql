-- The response that runs at the provider for the last LLM call of an agent execution, as JSON: its step, provider, model and id.
-- Whoever calls this step next goes on with it, and pays for no other one. NULL: none is known. It counts for its step only,
-- because a worker of the release before calls later steps and leaves it where it is.
ALTER TABLE agent_executions ADD COLUMN background_response TEXT;
