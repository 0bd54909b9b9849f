//! The batches of sub-agents: whether a `delegate` call may start a sub-agent, the sub-agent's first batch, and the
//! call's end.

use std::collections::BTreeMap;

use everturn_proto::{
    Json,
    event::SubAgentStart,
    ids,
    turn::{AgentDefinition, LlmCompleteState, SaveSubAgent, ToolCall},
    words::{EventType, FinishReason, ToolKind, ToolStatus},
};
use serde::Deserialize;

use super::{AgentExecutionEnd, DelegateCallEnd, TakenMessage, builder::Builder};
use crate::api::ToolEnd;

/// An agent execution that calls `delegate`, and its limits.
#[derive(Debug, Clone, Copy)]
pub struct Delegator<'a> {
    /// Depth in the tree of agent executions: 0 for the turn's own.
    pub depth: u32,
    /// Number of sub-agents in the whole turn so far.
    pub sub_agents: u32,
    /// The pinned definition of the agent execution.
    pub agent: &'a AgentDefinition,
    /// The definition of the turn's own agent execution. Its limits apply to every sub-agent of the turn.
    pub root_agent: &'a AgentDefinition,
}

/// The task of a sub-agent, and the agent for the task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The agent that works on the task.
    pub agent: AgentDefinition,
    /// The task, in the words of the delegating model.
    pub task: String,
}

/// The arguments of a `delegate` call.
#[derive(Deserialize)]
struct Arguments {
    agent: String,
    task: String,
}

/// Why a `delegate` call may not start a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The call is wrong, or a limit is reached.
    Call(String),
    /// The agent is allowed, but is unknown here or belongs to another tenant.
    UnknownAgent(String),
}

impl Refusal {
    /// Returns a sentence for the model.
    pub fn sentence(&self) -> String {
        match self {
            Self::Call(sentence) => sentence.clone(),
            Self::UnknownAgent(name) => {
                format!("The sub-agent `{name}` is not configured any more.")
            }
        }
    }
}

/// Returns the task of a `delegate` call, or the reason why the call may not start a sub-agent.
pub fn task(
    call: &ToolCall,
    delegator: &Delegator,
    agents: &BTreeMap<String, AgentDefinition>,
    tenant_id: &str,
) -> Result<Task, Refusal> {
    let Arguments { agent, task } = allowed(call, delegator).map_err(Refusal::Call)?;
    match agents.get(&agent).filter(|agent| agent.serves(tenant_id)) {
        Some(agent) => Ok(Task {
            agent: agent.clone(),
            task,
        }),
        None => Err(Refusal::UnknownAgent(agent)),
    }
}

/// Returns the agent and the task of a call: of the tool `delegate`, or of an agent's own tool.
fn arguments(call: &ToolCall, delegator: &Delegator) -> Result<Arguments, String> {
    let input = call.tool_input.as_ref();
    let mut tools = delegator.agent.tools.iter();
    let own = tools.find(|tool| tool.name == call.tool_name && tool.as_tool.is_some());
    if let Some(agent) = own.and_then(|tool| tool.delegates.first()) {
        return Ok(Arguments {
            agent: agent.clone(),
            task: input.map(task_of).unwrap_or_default(),
        });
    }
    let arguments = input.and_then(|input| input.decode::<Arguments>().ok());
    arguments.ok_or_else(|| "The arguments are {\"agent\": …, \"task\": …}, both texts.".to_owned())
}

/// Returns the task in the input of an agent's own tool: the text of an input with only the field `task`, and the JSON of
/// every other input.
fn task_of(input: &Json) -> String {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OnlyTask {
        task: String,
    }
    match input.decode::<OnlyTask>() {
        Ok(only) => only.task,
        Err(_) => input.as_str().to_owned(),
    }
}

/// Returns the arguments of the call, or a sentence for the model that explains why the arguments are not allowed.
fn allowed(call: &ToolCall, delegator: &Delegator) -> Result<Arguments, String> {
    let Arguments { agent, task } = arguments(call, delegator)?;
    if task.trim().is_empty() {
        return Err("The task is empty: say what the sub-agent is to do.".to_owned());
    }
    let allowed = delegator
        .agent
        .tools
        .iter()
        .filter(|tool| tool.kind() == ToolKind::Delegate && tool.name == call.tool_name);
    if !allowed
        .flat_map(|tool| &tool.delegates)
        .any(|name| *name == agent)
    {
        return Err(format!(
            "You have no sub-agent `{agent}`. Use only the sub-agents that you were given."
        ));
    }
    let limits = delegator.root_agent;
    if delegator.depth >= limits.max_depth {
        return Err(format!(
            "Sub-agents may not be nested deeper than {}. Do the task yourself.",
            limits.max_depth
        ));
    }
    if delegator.sub_agents >= limits.max_sub_agents {
        return Err(format!(
            "The turn has started {} sub-agents, the limit of the turn. Do the task yourself.",
            limits.max_sub_agents
        ));
    }
    Ok(Arguments { agent, task })
}

/// Returns a sub-agent's answer. A note tells the delegating model about a cut answer.
fn answer_of(state: &LlmCompleteState) -> Json {
    if let Some(output) = &state.output {
        return output.clone();
    }
    if state.is_cut {
        let text = &state.text;
        Json::of(&format!(
            "{text}\n\n(The answer was cut at the limit of tokens.)"
        ))
    } else {
        Json::of(&state.text)
    }
}

/// Returns the summary of a sub-agent that has used up its steps; `None` without a summary.
fn last_words(state: &LlmCompleteState) -> Option<&str> {
    let is_summary = state.finish() == FinishReason::StepLimit && !state.text.is_empty();
    is_summary.then_some(state.text.as_str())
}

impl Builder<'_> {
    /// Builds the first batch of a sub-agent: the start, and the task as the first message of the sub-agent's thread.
    pub(super) fn start_sub_agent(&mut self, start: &SaveSubAgent) {
        let agent_execution_id = self.agent_execution_id();
        let id = ids::task_message_id(&agent_execution_id);
        let data = SubAgentStart {
            agent: start.agent.clone(),
            task: start.task.clone(),
            agent_execution_id,
            parent_execution_id: start.parent_execution_id.clone(),
            execution_id: start.execution_id.clone(),
            call_id: start.call_id.clone(),
            depth: start.depth,
        };
        let sequence_number = self.event(EventType::SubAgentStart, &data);
        self.batch.taken = Some(TakenMessage {
            id,
            new_content: Some(start.task.clone()),
            sequence_number,
        });
    }

    /// Ends the call that started the sub-agent, with the sub-agent's answer or with the reason for the missing answer.
    pub(super) fn end_delegate_call(&mut self, end: &AgentExecutionEnd) {
        let call = self.snapshot.delegate_call.as_ref();
        let Some(call) = call.filter(|call| call.tool.record.end.is_none()) else {
            return;
        };
        let took = call
            .started_at
            .map(|at| (self.snapshot.now - at).num_milliseconds())
            .unwrap_or_default();
        let duration_ms = u32::try_from(took.max(0)).unwrap_or(u32::MAX);
        let execution_id = &call.tool.record.call.execution_id;
        let checkpoint = self.snapshot.checkpoint.as_ref();
        let tool_end = match end {
            AgentExecutionEnd::Completed { .. } => {
                let answer = checkpoint.map_or_else(|| Json::of(&""), answer_of);
                ToolEnd::of_result(execution_id, answer, false, duration_ms)
            }
            AgentExecutionEnd::Cancelled { .. } => ToolEnd {
                status: ToolStatus::Cancelled,
                ..ToolEnd::failed("The sub-agent was cancelled.", duration_ms)
            },
            AgentExecutionEnd::Failed { code, message } => {
                let error = format!("The sub-agent failed ({code}): {message}");
                match checkpoint.and_then(last_words) {
                    Some(text) => {
                        let result = format!(
                            "{error} The sub-agent's work and findings until the failure:\n\n{text}"
                        );
                        ToolEnd::of_result(execution_id, Json::of(&result), true, duration_ms)
                    }
                    None => ToolEnd::failed(&error, duration_ms),
                }
            }
        };
        self.batch.delegate_call_end = Some(DelegateCallEnd {
            asked_by: call.asked_by.clone(),
            tool: call.tool.clone(),
            end: tool_end,
            missing_of: call.missing_of.clone(),
        });
    }
}
