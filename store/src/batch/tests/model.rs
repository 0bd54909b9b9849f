//! A store of a few vectors. As a back end does, it loads what `needs` asks for and applies what `build` returns.

use std::collections::{BTreeMap, HashSet};

use everturn_proto::{
    ids,
    turn::{LlmCompleteState, ToolCall},
    words::{AgentExecutionStatus, ToolStatus},
};

use crate::api::ToolEnd;

use super::super::{
    AssistantRow, BatchRequest, DelegateCall, NewEvent, Snapshot, StoredMessage, ToolRow,
    ToolsNeeded, Totals, build, key, needs,
};

#[derive(Debug)]
pub(super) struct Model {
    pub(super) status: AgentExecutionStatus,
    pub(super) events: Vec<NewEvent>,
    pub(super) tools: Vec<ToolRow>,
    pub(super) assistants: Vec<AssistantRow>,
    /// The tool executions whose results an assistant row has.
    pub(super) results: BTreeMap<String, Vec<String>>,
    pub(super) checkpoints: BTreeMap<u32, LlmCompleteState>,
    pub(super) partials: BTreeMap<u32, LlmCompleteState>,
    pub(super) messages: u32,
    /// How the call ended that started the agent execution, when that is a sub-agent's.
    pub(super) delegate_call_end: Option<ToolEnd>,
    is_sub_agent: bool,
    steered: HashSet<String>,
    keys: HashSet<String>,
    steps: u32,
}

impl Model {
    pub(super) fn new(is_sub_agent: bool) -> Self {
        Self {
            status: AgentExecutionStatus::Running,
            events: Vec::new(),
            tools: Vec::new(),
            assistants: Vec::new(),
            results: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            partials: BTreeMap::new(),
            messages: 0,
            delegate_call_end: None,
            is_sub_agent,
            steered: HashSet::new(),
            keys: HashSet::new(),
            steps: 0,
        }
    }

    /// Saves as a back end does: it writes nothing when the key is stored, when the agent execution has ended, or when
    /// the batch is refused.
    pub(super) fn save(&mut self, request: &BatchRequest) {
        let mut request = request.clone();
        if self.is_sub_agent {
            request.step.agent_execution_id = "run_sub_agent".into();
        }
        let request = &request;
        let key = key(request);
        if self.keys.contains(&key) || self.status != AgentExecutionStatus::Running {
            return;
        }
        let Ok(batch) = build(request, &self.load(request)) else {
            return;
        };
        if batch.events.is_empty() {
            return;
        }
        assert!(self.keys.insert(batch.key));
        self.events.extend(batch.events);
        self.steered.extend(batch.taken.map(|taken| taken.id));
        if let Some(row) = batch.assistant {
            assert!(
                self.assistants.iter().all(|known| known.id != row.id),
                "one row a step"
            );
            self.assistants.push(row);
        }
        self.tools.extend(batch.pending_tools);
        if let Some(approved) = batch.approved_tool {
            let id = &approved.record.call.execution_id;
            let place = self
                .tools
                .iter()
                .position(|tool| tool.record.call.execution_id == *id)
                .unwrap();
            self.tools[place] = approved;
        }
        for observed in batch.observed_tools.into_iter().map(|one| one.tool) {
            let id = &observed.record.call.execution_id;
            let place = self
                .tools
                .iter()
                .position(|tool| tool.record.call.execution_id == *id)
                .unwrap();
            self.tools[place] = observed;
        }
        for step in batch.observed_steps {
            let mut observed: Vec<_> = self
                .tools
                .iter()
                .filter(|tool| tool.observed_sequence.is_some())
                .filter(|tool| step.execution_ids.contains(&tool.record.call.execution_id))
                .collect();
            observed.sort_by_key(|tool| tool.call_index);
            let ids = observed.iter().map(|tool| &tool.record.call.execution_id);
            self.results
                .insert(step.assistant_message_id, ids.cloned().collect());
        }
        self.messages += batch.new_messages;
        self.steps = batch.steps;
        if let Some(ended) = batch.delegate_call_end {
            assert_eq!(
                self.delegate_call_end.replace(ended.end),
                None,
                "a call ends once"
            );
        }
        if let Some(end) = batch.end {
            self.status = end.status;
        }
    }

    fn load(&self, request: &BatchRequest) -> Snapshot {
        let (needs, step) = (needs(request), &request.step);
        let tools: Vec<ToolRow> = match &needs.tools {
            ToolsNeeded::None => Vec::new(),
            ToolsNeeded::One(id) => self
                .tools
                .iter()
                .filter(|tool| tool.record.call.execution_id == *id)
                .cloned()
                .collect(),
            ToolsNeeded::Open => self
                .tools
                .iter()
                .filter(|tool| tool.observed_sequence.is_none())
                .cloned()
                .collect(),
        };
        let steps = tools
            .iter()
            .map(|tool| tool.step)
            .chain(needs.checkpoint.then_some(step.step));
        let rows: HashSet<String> = steps
            .map(|step| ids::assistant_message_id(&request.step.agent_execution_id, step))
            .collect();
        let stored = |id: &String| {
            let is_waiting = false;
            self.steered.contains(id).then(|| StoredMessage {
                is_retry: false,
                content: String::new(),
                attachments: Vec::new(),
                model: None,
                is_waiting,
            })
        };
        let recorded = self.tools.iter().filter(|tool| tool.step == step.step);
        let recorded = recorded.map(|tool| tool.record.call.execution_id.clone());
        Snapshot {
            recorded: recorded.collect(),
            last_sequence: u32::try_from(self.events.len()).unwrap(),
            steps: self.steps,
            checkpoint: self
                .checkpoints
                .get(&step.step)
                .filter(|_| needs.checkpoint)
                .cloned(),
            partial: self
                .partials
                .get(&step.step)
                .filter(|_| needs.partial)
                .cloned(),
            totals: Totals::default(),
            assistants: self
                .assistants
                .iter()
                .filter(|row| rows.contains(&row.id))
                .cloned()
                .collect(),
            tools,
            plans: Vec::new(),
            message: needs.message.as_ref().and_then(stored),
            delegate_call: needs.delegate_call.as_ref().map(|_| DelegateCall {
                asked_by: "parent".to_owned(),
                started_at: None,
                tool: self.delegate_call(),
                missing_of: None,
            }),
            ..Snapshot::default()
        }
    }

    fn delegate_call(&self) -> ToolRow {
        let mut tool = ToolRow::pending(0, 0, ToolCall::default());
        tool.record.end = self.delegate_call_end.clone();
        tool
    }

    /// Starts the tool under the conditions of `claim_tool`.
    pub(super) fn start(&mut self, execution_id: &str) {
        let tools = self
            .tools
            .iter_mut()
            .filter(|tool| tool.record.call.execution_id == execution_id);
        let may_run = |tool: &&mut ToolRow| {
            tool.record.status == ToolStatus::Pending && tool.record.approval.lets_run()
        };
        for tool in tools.filter(may_run) {
            tool.record.status = ToolStatus::Running;
        }
    }
}
