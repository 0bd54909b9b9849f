//! What is to be saved, in the store's own terms. The wire's `SaveRequest` becomes a [`BatchRequest`] here and nowhere
//! else.

use everturn_proto::{
    Thread,
    event::ModelFallback,
    turn::{SaveApproval, SaveEnd, SaveRequest, SaveSubAgent, save_request},
    words::{AgentExecutionStatus, FailureCode},
};

use crate::{
    api::{Result, StepKey},
    error::StoreError,
};

/// One batch to save, and the step that saves it.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRequest {
    /// The step that saves it. Its message is part of most keys of batches.
    pub step: StepKey,
    /// What the batch saves.
    pub save: Save,
}

/// What a batch saves.
#[derive(Debug, Clone, PartialEq)]
pub enum Save {
    /// A user's message that enters the timeline. It begins a turn, or joins the one that runs.
    UserMessage {
        /// Id of the message.
        message_id: String,
        /// Its text; `None` when its row in `messages` has it.
        content: Option<String>,
    },
    /// What the model said before it asked for tools, with an act for each tool call. It is read from the checkpoint.
    Thought,
    /// An answer that the provider cut, and that goes on in the next step. It is read from the checkpoint.
    CutReply,
    /// The summary that stands for older messages. It is read from the checkpoint.
    Compaction,
    /// The step gave a model up, and calls another one. Only the store itself saves it.
    ModelFallback(ModelFallback),
    /// How a tool ended. It is read from the tool's record.
    Observe {
        /// The tool execution.
        execution_id: String,
        /// The failure of the activity, when the tool itself recorded no end.
        failure: Option<String>,
    },
    /// The answer to an approval.
    Approval(SaveApproval),
    /// The start of a sub-agent.
    SubAgentStart(SaveSubAgent),
    /// The end of an agent execution.
    End(AgentExecutionEnd),
}

/// How an agent execution ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentExecutionEnd {
    /// The model has answered.
    Completed,
    /// It was cancelled.
    Cancelled {
        /// The reason, for readers.
        reason: String,
    },
    /// It failed.
    Failed {
        /// Why it failed.
        code: FailureCode,
        /// What happened, for people.
        message: String,
    },
}

impl AgentExecutionEnd {
    /// Returns the status of the agent execution after this end.
    pub fn status(&self) -> AgentExecutionStatus {
        match self {
            Self::Completed => AgentExecutionStatus::Completed,
            Self::Cancelled { .. } => AgentExecutionStatus::Cancelled,
            Self::Failed { .. } => AgentExecutionStatus::Failed,
        }
    }

    /// True when the text so far of a model call that was stopped is kept, because there will be no other. The text of a
    /// call that failed is not kept, because it is not what the model said.
    pub(super) fn keeps_partial_text(&self) -> bool {
        match self {
            Self::Completed => false,
            Self::Cancelled { .. } => true,
            Self::Failed { code, .. } => code.is_from_outside(),
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
                content: taken.content.clone().filter(|text| !text.is_empty()),
            },
            save_request::Batch::Thought(_) => Save::Thought,
            save_request::Batch::CutReply(_) => Save::CutReply,
            save_request::Batch::Compaction(_) => Save::Compaction,
            save_request::Batch::Observe(observe) => Save::Observe {
                execution_id: observe.execution_id.clone(),
                failure: observe.failure.clone(),
            },
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
            AgentExecutionStatus::Completed => Self::Completed,
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
