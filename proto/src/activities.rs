//! The activities by name, input and output; no bodies.
//!
//! `everturn-workflows` calls these declarations, `everturn-activities` implements them (`definition = …`), and neither
//! crate needs the other. The names are part of every stored history and never change.

// The macro generates undocumented markers beside every declaration.
#![allow(missing_docs)]

use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

use crate::turn::{
    AfterTurnInput, AfterTurnPlan, AnnounceCancelRequest, ClaimedRemoteTool, Inbox,
    LoadTurnRequest, LoadedTurn, ReadInboxRequest, RecordRemoteToolRequest, RunToolRequest,
    RunToolResult, SaveRequest, SaveResult, ThinkRequest, ThinkResult,
};

/// The activities of a turn.
pub struct AgentActivities;

#[activity_definitions]
impl AgentActivities {
    /// Takes the message into the turn and pins the agent. A local activity.
    #[activity(name = "load_turn_activity")]
    pub fn load_turn(_: LoadTurnRequest) -> Result<LoadedTurn, ActivityError> {
        unimplemented!()
    }

    /// Stores the messages and cancels of signals, and reads the waiting messages. A local activity.
    #[activity(name = "read_inbox_activity")]
    pub fn read_inbox(_: ReadInboxRequest) -> Result<Inbox, ActivityError> {
        unimplemented!()
    }

    /// Calls the model once and stores the checkpoint `llm_complete`.
    #[activity(name = "llm_thinking_activity")]
    pub fn llm_thinking(_: ThinkRequest) -> Result<ThinkResult, ActivityError> {
        unimplemented!()
    }

    /// Runs a tool and records the end of the tool execution.
    #[activity(name = "tool_execution_activity")]
    pub fn tool_execution(_: RunToolRequest) -> Result<RunToolResult, ActivityError> {
        unimplemented!()
    }

    /// Claims a remote tool before its activity is scheduled. A local activity.
    #[activity(name = "claim_remote_tool_activity")]
    pub fn claim_remote_tool(_: RunToolRequest) -> Result<ClaimedRemoteTool, ActivityError> {
        unimplemented!()
    }

    /// Records the end of a remote tool's activity. A local activity.
    #[activity(name = "record_remote_tool_activity")]
    pub fn record_remote_tool(_: RecordRemoteToolRequest) -> Result<RunToolResult, ActivityError> {
        unimplemented!()
    }

    /// Plans the hooks that run after a turn, and stores their records.
    #[activity(name = "begin_after_turn_activity")]
    pub fn begin_after_turn(_: AfterTurnInput) -> Result<AfterTurnPlan, ActivityError> {
        unimplemented!()
    }

    /// Persists a batch of events. A local activity, and an ordinary activity while the store is away.
    #[activity(name = "save_event_activity")]
    pub fn save_event(_: SaveRequest) -> Result<SaveResult, ActivityError> {
        unimplemented!()
    }

    /// Announces the cancellation of an agent execution to every worker. A local activity, which waits for no answer.
    #[activity(name = "announce_cancel_activity")]
    pub fn announce_cancel(_: AnnounceCancelRequest) -> Result<(), ActivityError> {
        unimplemented!()
    }
}

/// Markers of the declarations, for `#[activity(definition = …)]`.
pub mod declared {
    pub use super::agent_activities::{
        AnnounceCancel, BeginAfterTurn, ClaimRemoteTool, LlmThinking, LoadTurn, ReadInbox,
        RecordRemoteTool, SaveEvent, ToolExecution,
    };
}
