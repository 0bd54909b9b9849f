//! A cache of rows written by the process, because a later save of the turn would otherwise read the rows again.
//!
//! A worker that runs a turn has written most input of the turn's next batch: the reply, the assistant's row, the ends
//! of tools. A cached turn is valid as long as the conversation has the cached last sequence number. The statement that
//! writes a batch checks the number. With another number, another process has written: the store forgets the turn and
//! reads the batch's input, like a worker without a cache.
//!
//! Only turns that began in this process are cached, from their first event on. A sub-agent's rows are always read.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_proto::{LogId, turn::LlmCompleteState};
use lru::LruCache;
use prost::Message;

use super::read::{ReadBatch, ReadConversation};
use crate::{
    api::{BeginTurn, BegunTurn, StepKey, ToolKey, ToolRecord},
    batch::{
        AgentExecutionEnd, AssistantRow, Batch, BatchRequest, Save, Snapshot, ToolRow, Totals,
    },
};

/// The most cached turns, equal to a worker's cached workflows. The longest unused turn leaves first.
const MAX_TURNS: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// The longest texts of a cached turn, in bytes. With the most turns, the cache takes 64 MB. Reading longer texts takes
/// long enough to make one more round trip negligible.
const MAX_BYTES: usize = 64 * 1024;

/// The process's cached turns, by conversation.
#[derive(Debug)]
pub(crate) struct KnownTurns {
    turns: Mutex<LruCache<String, KnownTurn>>,
}

#[derive(Debug)]
struct KnownTurn {
    log_id: LogId,
    /// The other fields are valid while the conversation has this last sequence number.
    last_sequence: u32,
    message_id: String,
    agent_execution_id: String,
    /// Number of saved steps, and the usage of their calls.
    steps: u32,
    totals: Totals,
    /// The unsaved reply, with its step.
    reply: Option<(u32, LlmCompleteState)>,
    /// The row of the last step with tool calls.
    assistant: Option<AssistantRow>,
    /// The step's tools without an observe.
    open_tools: Vec<ToolRow>,
}

impl Default for KnownTurns {
    fn default() -> Self {
        Self {
            turns: Mutex::new(LruCache::new(MAX_TURNS)),
        }
    }
}

impl KnownTurns {
    /// Notes a turn that has just begun.
    pub(super) fn begun(&self, begin: &BeginTurn, begun: &BegunTurn) {
        let turn = KnownTurn {
            log_id: begun.log_id.clone(),
            last_sequence: begun.last_sequence,
            message_id: begin.message_id.clone(),
            agent_execution_id: begin.agent_execution_id.clone(),
            steps: 0,
            totals: Totals {
                agent: begin.agent.name.clone(),
                ..Totals::default()
            },
            reply: None,
            assistant: None,
            open_tools: Vec::new(),
        };
        self.lock().put(begin.conversation_id.clone(), turn);
    }

    /// Notes the stored reply of a step.
    pub(super) fn replied(&self, step: &StepKey, state: &LlmCompleteState) {
        self.change(&step.conversation_id, |turn| {
            if turn.agent_execution_id == step.agent_execution_id {
                turn.reply = Some((step.step, state.clone()));
            }
            true
        });
    }

    /// Notes the end of a tool.
    pub(super) fn ended(&self, key: &ToolKey, record: &ToolRecord) {
        self.change(&key.conversation_id, |turn| {
            let mut tools = turn.open_tools.iter_mut();
            if let Some(tool) = tools.find(|tool| tool.is(&key.execution_id)) {
                tool.record = record.clone();
                // A batch needs only the part of the result that readers see.
                if let Some(end) = &mut tool.record.end {
                    end.full_result = None;
                }
            }
            true
        });
    }

    /// Returns the input of the batch; `None` when a part of the input is not cached.
    pub(super) fn batch(&self, request: &BatchRequest) -> Option<ReadBatch> {
        let mut turns = self.lock();
        let turn = turns.get(&request.step.conversation_id)?;
        if turn.agent_execution_id != request.step.agent_execution_id
            || turn.message_id != request.step.message_id
        {
            return None;
        }
        let snapshot = turn.snapshot(request)?;
        Some(ReadBatch {
            conversation: ReadConversation {
                log_id: turn.log_id.clone(),
                last_sequence: turn.last_sequence,
            },
            snapshot: Snapshot {
                last_sequence: turn.last_sequence,
                steps: turn.steps,
                ..snapshot
            },
        })
    }

    /// Notes that the batch was written after the state `before` of the conversation.
    pub(super) fn saved(&self, request: &BatchRequest, before: &ReadConversation, batch: &Batch) {
        self.change(&request.step.conversation_id, |turn| {
            turn.agent_execution_id == request.step.agent_execution_id
                && turn.log_id == before.log_id
                && turn.last_sequence == before.last_sequence
                && turn.advance(request, batch)
        });
    }

    /// Forgets the turn of the conversation, because another writer has written, or may have written.
    pub(super) fn forget(&self, conversation_id: &str) {
        self.lock().pop(conversation_id);
    }

    /// Changes a cached turn. Forgets the turn when `change` returns false, or when the turn's texts are too long.
    fn change(&self, conversation_id: &str, change: impl FnOnce(&mut KnownTurn) -> bool) {
        let mut turns = self.lock();
        if let Some(turn) = turns.get_mut(conversation_id)
            && !(change(turn) && turn.bytes() <= MAX_BYTES)
        {
            turns.pop(conversation_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<String, KnownTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTurn {
    fn snapshot(&self, request: &BatchRequest) -> Option<Snapshot> {
        match &request.save {
            Save::Thought | Save::CutReply | Save::Compaction => Some(Snapshot {
                checkpoint: Some(self.reply_of(request.step.step)?.clone()),
                ..Snapshot::default()
            }),
            Save::End(AgentExecutionEnd::Completed { .. }) if self.open_tools.is_empty() => {
                let reply = self.reply_of(request.step.step)?;
                Some(Snapshot {
                    totals: self.totals.with(reply),
                    checkpoint: Some(reply.clone()),
                    ..Snapshot::default()
                })
            }
            Save::Observe { execution_id, .. } => {
                let tool = self.open_tools.iter().find(|tool| tool.is(execution_id))?;
                let assistant = self.assistant.as_ref()?;
                let is_asked = assistant.step == request.step.step && assistant.step == tool.step;
                let is_whole = tool.record.end.is_some() && tool.changed_plans().next().is_none();
                (is_asked && is_whole).then(|| Snapshot {
                    tools: vec![tool.clone()],
                    assistants: vec![assistant.clone()],
                    ..Snapshot::default()
                })
            }
            Save::End(_)
            | Save::UserMessage { .. }
            | Save::ModelFallback(_)
            | Save::Outcome(_)
            | Save::Question(_)
            | Save::Approval(_)
            | Save::SubAgentStart(_) => None,
        }
    }

    fn reply_of(&self, step: u32) -> Option<&LlmCompleteState> {
        let (of, reply) = self.reply.as_ref()?;
        (*of == step).then_some(reply)
    }

    /// Notes the changes of a batch. Returns false when the turn is no longer known after the batch.
    fn advance(&mut self, request: &BatchRequest, batch: &Batch) -> bool {
        match &request.save {
            Save::Thought | Save::CutReply | Save::Compaction => {
                let Some(reply) = self.reply_of(request.step.step) else {
                    // Another process has made the call, so the call's usage is unknown here.
                    return false;
                };
                self.totals = self.totals.with(reply);
                self.reply = None;
                self.assistant.clone_from(&batch.assistant);
            }
            Save::Observe { .. } => {}
            Save::End(_)
            | Save::UserMessage { .. }
            | Save::ModelFallback(_)
            | Save::Outcome(_)
            | Save::Question(_)
            | Save::Approval(_)
            | Save::SubAgentStart(_) => {
                return false;
            }
        }
        self.last_sequence = batch.last_sequence;
        self.steps = batch.steps;
        self.open_tools.retain(|open| {
            let id = &open.record.call.execution_id;
            let mut observed = batch.observed_tools.iter();
            !observed.any(|observed| observed.tool.is(id))
        });
        self.open_tools.extend(batch.pending_tools.iter().cloned());
        true
    }

    /// Returns the approximate length of the turn's texts.
    fn bytes(&self) -> usize {
        let reply = self.reply.iter().map(|(_, reply)| reply.encoded_len());
        let assistant = self.assistant.iter().map(|row| {
            let calls = row.tool_calls.iter().map(Message::encoded_len);
            row.content.len() + calls.sum::<usize>()
        });
        let tools = self.open_tools.iter().map(|tool| tool.record.bytes());
        reply.chain(assistant).chain(tools).sum()
    }
}

#[cfg(test)]
mod tests {
    use everturn_proto::turn::AgentDefinition;

    use super::*;
    use crate::api::{OnUnknownAgent, PinnedAgent};

    fn begin(turns: &KnownTurns, conversation_id: &str) -> StepKey {
        let begin = BeginTurn {
            conversation_id: conversation_id.into(),
            tenant_id: "t".into(),
            message_id: "m".into(),
            content: None,
            agent_execution_id: "run".into(),
            agent: AgentDefinition::default(),
            on_unknown_agent: OnUnknownAgent::Refuse,
            epoch: None,
            tenant_budget: crate::api::DayBudget::default(),
        };
        let agent = PinnedAgent {
            definition: AgentDefinition::default(),
            hash: String::new(),
        };
        turns.begun(&begin, &BegunTurn::now(agent, 0, "log".into(), 1));
        StepKey {
            conversation_id: conversation_id.into(),
            message_id: "m".into(),
            agent_execution_id: "run".into(),
            step: 0,
            epoch: None,
        }
    }

    fn knows(turns: &KnownTurns, step: &StepKey) -> bool {
        let request = BatchRequest {
            step: step.clone(),
            save: Save::Thought,
        };
        turns.batch(&request).is_some()
    }

    fn reply(bytes: usize) -> LlmCompleteState {
        LlmCompleteState {
            text: "x".repeat(bytes),
            ..LlmCompleteState::default()
        }
    }

    #[test]
    fn a_turn_with_long_texts_is_not_kept() {
        let turns = KnownTurns::default();
        let step = begin(&turns, "c");
        assert!(!knows(&turns, &step), "it has no reply yet");
        turns.replied(&step, &reply(1000));
        assert!(knows(&turns, &step));
        turns.replied(&step, &reply(MAX_BYTES));
        turns.replied(&step, &reply(1000));
        assert!(!knows(&turns, &step));
    }

    #[test]
    fn the_turns_that_were_used_last_are_kept() {
        let turns = KnownTurns::default();
        for number in 0..2 * MAX_TURNS.get() {
            let step = begin(&turns, &format!("c{number}"));
            turns.replied(&step, &reply(1));
        }
        assert_eq!(turns.lock().len(), MAX_TURNS.get());
        let first = begin(&KnownTurns::default(), "c0");
        assert!(!knows(&turns, &first));
    }

    #[test]
    fn a_reply_of_another_step_or_agent_execution_is_not_taken_for_this_one() {
        let turns = KnownTurns::default();
        let step = begin(&turns, "c");
        let others = StepKey {
            agent_execution_id: "other".into(),
            ..step.clone()
        };
        turns.replied(&others, &reply(1));
        assert!(!knows(&turns, &step));
        turns.replied(&step, &reply(1));
        assert!(!knows(
            &turns,
            &StepKey {
                step: 1,
                ..step.clone()
            }
        ));
        assert!(!knows(&turns, &others));
        turns.forget("c");
        assert!(!knows(&turns, &step));
    }
}
