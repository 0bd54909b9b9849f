//! The bodies of failures, as the API and `everturn failures --json` show failures.

use everturn_store::{AgentFailure, FailureCount};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{listed::time, schema::Id};

/// A failed agent execution: an agent that failed in a turn, or on a task from a parent agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Failure)]
pub struct FailureBody {
    #[schema(format = DateTime)]
    failed_at: String,
    #[schema(format = DateTime)]
    started_at: String,
    #[schema(example = "acme")]
    tenant: String,
    #[schema(example = "support")]
    agent: String,
    /// The code of the event `error`. Ignore unknown codes, because later versions add codes.
    #[schema(required = true, example = "llm_unavailable")]
    code: Option<String>,
    /// The message of the event `error`, at most 1024 bytes.
    #[schema(required = true)]
    message: Option<String>,
    /// Number of LLM calls of the last step that called a model: more than 1 after a repeated call, 0 without a call.
    attempts: u32,
    #[schema(value_type = Id)]
    conversation_id: String,
    /// The message of the turn.
    #[schema(value_type = Id)]
    message_id: String,
    #[schema(value_type = Id)]
    agent_execution_id: String,
    /// The agent execution that delegated the task; null when the turn's own agent failed.
    #[schema(required = true)]
    parent_execution_id: Option<String>,
}

impl From<AgentFailure> for FailureBody {
    fn from(failure: AgentFailure) -> Self {
        Self {
            failed_at: time(failure.finished_at),
            started_at: time(failure.started_at),
            conversation_id: failure.conversation_name().to_owned(),
            tenant: failure.tenant_id,
            agent: failure.agent,
            code: failure.error_code,
            message: failure.error_message,
            attempts: failure.step_calls,
            message_id: failure.message_id,
            agent_execution_id: failure.id,
            parent_execution_id: failure.parent_execution_id,
        }
    }
}

/// The number of failures of an agent with a code.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FailureCount)]
pub struct FailureCountBody {
    #[schema(example = "support")]
    agent: String,
    /// The code of the events `error`.
    #[schema(required = true, example = "llm_unavailable")]
    code: Option<String>,
    /// Number of failed agent executions.
    failures: u64,
    /// The oldest counted failure.
    #[schema(format = DateTime)]
    first_at: String,
    /// The newest counted failure.
    #[schema(format = DateTime)]
    last_at: String,
}

impl From<FailureCount> for FailureCountBody {
    fn from(count: FailureCount) -> Self {
        Self {
            agent: count.agent,
            code: count.error_code,
            failures: count.failures,
            first_at: time(count.first_at),
            last_at: time(count.last_at),
        }
    }
}
