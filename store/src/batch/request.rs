//! The request to save, in the store's own terms. Only the code here converts the wire's `SaveRequest` to a
//! [`BatchRequest`].

use everturn_proto::{
    Thread,
    event::ModelFallback,
    turn::{SaveApproval, SaveEnd, SaveQuestion, SaveRequest, SaveSubAgent, save_request},
    words::{AgentExecutionStatus, FailureCode},
};

use crate::{
    api::{PersonsOutcome, Result, StepKey, WaitingHooks},
    error::StoreError,
};

/// One batch to save, and the step that saves the batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRequest {
    /// The saving step. Its message is part of most keys of batches.
    pub step: StepKey,
    /// The content of the batch.
    pub save: Save,
}

/// The content of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Save {
    /// A user's message that enters the timeline. The message begins a turn, or joins a running turn.
    UserMessage {
        /// Id of the message.
        message_id: String,
        /// Text of the message; `None` when the message's row has the text.
        content: Option<String>,
    },
    /// The model's text before its tool calls, with an act per tool call. Read from the checkpoint.
    Thought,
    /// An answer that the provider cut, continued in the next step. Read from the checkpoint.
    CutReply,
    /// The summary in place of older messages. Read from the checkpoint.
    Compaction,
    /// The step gave up a model and calls another model. Only the store itself saves the batch.
    ModelFallback(ModelFallback),
    /// The end of a tool. Read from the tool's record.
    Observe {
        /// The tool execution.
        execution_id: String,
        /// The failure of the activity, when the tool recorded no end.
        failure: Option<String>,
    },
    /// A question of a running tool to a person.
    Question(SaveQuestion),
    /// The answer to an approval, or to a tool's question.
    Approval(SaveApproval),
    /// The outcome of a tool call, as a person says. Only the store itself saves the batch.
    Outcome(PersonsOutcome),
    /// The start of a sub-agent.
    SubAgentStart(SaveSubAgent),
    /// The end of an agent execution.
    End(AgentExecutionEnd),
}

/// How an agent execution ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentExecutionEnd {
    /// The model has answered.
    Completed {
        /// The agent's hooks after the turn; `None` without hooks.
        hooks: Option<WaitingHooks>,
    },
    /// The agent execution was cancelled.
    Cancelled {
        /// The reason, for readers.
        reason: String,
    },
    /// The agent execution failed.
    Failed {
        /// The failure's code.
        code: FailureCode,
        /// The description of the failure, for people.
        message: String,
    },
}

impl AgentExecutionEnd {
    /// Returns the agent execution's status after the end.
    pub fn status(&self) -> AgentExecutionStatus {
        match self {
            Self::Completed { .. } => AgentExecutionStatus::Completed,
            Self::Cancelled { .. } => AgentExecutionStatus::Cancelled,
            Self::Failed { .. } => AgentExecutionStatus::Failed,
        }
    }

    /// Returns true when the text so far of a stopped model call is kept, because no later text follows. A call that has
    /// timed out counts as stopped. The text of a call that failed otherwise is not kept, because it is not the model's
    /// answer.
    pub(super) fn keeps_partial_text(&self) -> bool {
        match self {
            Self::Completed { .. } => false,
            Self::Cancelled { .. } => true,
            Self::Failed { code, .. } => code.is_from_outside() || *code == FailureCode::LlmTimeout,
        }
    }
}

impl BatchRequest {
    /// Returns the thread whose messages are the context of the agent execution.
    pub(crate) fn thread(&self) -> Thread {
        let StepKey {
            conversation_id,
            message_id,
            agent_execution_id,
            ..
        } = &self.step;
        Thread::of(conversation_id, message_id, agent_execution_id)
    }
}

impl TryFrom<&SaveRequest> for BatchRequest {
    type Error = StoreError;

    fn try_from(request: &SaveRequest) -> Result<Self> {
        let wire = request
            .batch
            .as_ref()
            .ok_or_else(|| StoreError::Conflict("the save names no batch".into()))?;
        let save = match wire {
            save_request::Batch::Steer(taken) => Save::UserMessage {
                message_id: taken.message_id.clone(),
                content: None,
            },
            save_request::Batch::Thought(_) => Save::Thought,
            save_request::Batch::CutReply(_) => Save::CutReply,
            save_request::Batch::Compaction(_) => Save::Compaction,
            save_request::Batch::Observe(observe) => Save::Observe {
                execution_id: observe.execution_id.clone(),
                failure: observe.failure.clone(),
            },
            save_request::Batch::Question(asked) => Save::Question(asked.clone()),
            save_request::Batch::Approval(answer) => Save::Approval(answer.clone()),
            save_request::Batch::SubAgent(start) => Save::SubAgentStart(start.clone()),
            save_request::Batch::End(end) => Save::End(end.try_into()?),
        };
        let step = StepKey {
            conversation_id: request.conversation_id.clone(),
            message_id: request.message_id.clone(),
            agent_execution_id: request.agent_execution_id.clone(),
            step: request.step,
            epoch: request.epoch,
        };
        Ok(Self { step, save })
    }
}

impl TryFrom<&SaveEnd> for AgentExecutionEnd {
    type Error = StoreError;

    fn try_from(end: &SaveEnd) -> Result<Self> {
        Ok(match end.status() {
            AgentExecutionStatus::Completed => Self::Completed {
                hooks: end.hooks.as_ref().map(|hooks| WaitingHooks {
                    tool_queue: hooks.tool_queue.clone(),
                }),
            },
            AgentExecutionStatus::Cancelled => Self::Cancelled {
                reason: end.message.clone().unwrap_or_default(),
            },
            AgentExecutionStatus::Failed => Self::Failed {
                code: end.code.clone().unwrap_or_default().into(),
                message: end.message.clone().unwrap_or_default(),
            },
            AgentExecutionStatus::Running | AgentExecutionStatus::Unknown(_) => {
                let status = &end.status;
                let message = format!("`{status}` is no way for an agent execution to end");
                return Err(StoreError::Conflict(message));
            }
        })
    }
}
