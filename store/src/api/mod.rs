//! The store's traits, small and ordered by their users. Every call for a caller takes the caller's [`Access`].
//!
//! - `events`: reads the event log. For gateways
//! - `conversations`, `lists`: conversations, and pages of their list. For gateways
//! - `messages`: messages that wait for a turn. For gateways
//! - `audit`: the audit trail. For gateways and operators
//! - `background`: model responses that continue at their provider without a reader. For workers
//! - `chain`: a step's position in the chain of its agent's models. For workers
//! - `turns`, `turn_inputs`: the beginning of turns, and the reads of a turn. For workers
//! - `steps`, `model_calls`: the claims and replies of steps, and model calls until their replies. For workers
//! - `tools`: the claims and ends of tool executions. For workers
//! - `saves`: saves of batches of events. For workers
//! - `outside`: tool calls that wait for a person or the client. For gateways
//! - `blobs`: images and files. For gateways and workers
//! - `budgets`: the budgets of turns, conversations and tenants, and the usage of tenants. For workers and gateways
//! - `executions`: the tree of agent executions. For gateways
//! - `turn_results`: the results of turns, and the calls over MCP. For gateways
//! - `failures`: failed agent executions across conversations. For gateways and operators
//! - `past_calls`: past LLM calls with their content. For gateways
//! - `tool_results`: whole results of tools, in slices. For gateways and workers
//! - `page_limit`: the size of one read
//! - `connections`: the number of a store's connections. For metrics
//! - `keys`: API keys and browser sessions. For gateways and operators
//! - `owners`: owners with refused credentials. For gateways
//! - `consents`: consents of people to the use of a tool server in their name. For gateways and workers
//! - `leases`: the leases of live worker processes. For workers and gateways
//! - `backlog`: the work that waits across conversations. For metrics of gateways
//! - `reconciliation`: accepted messages and turns that have not ended. For gateways
//! - `traces`: the traces of turns. For gateways and workers
//! - `tenants`: summaries of tenants. For gateways
//! - `retention`: the removal of old conversations. For operators
//!
//! Types with columns as their fields are read from rows directly (`sqlx::FromRow`). Must not be here: statements, and
//! details of only one database.

use everturn_proto::ConversationName;

mod audit;
mod background;
mod backlog;
mod blobs;
mod budgets;
mod chain;
mod connections;
mod consents;
mod conversations;
mod events;
mod executions;
mod failures;
mod keys;
mod leases;
mod lists;
mod messages;
mod model_calls;
mod outside;
mod owners;
mod page_limit;
mod past_calls;
mod reconciliation;
mod retention;
mod saves;
mod steps;
mod tenants;
mod tool_results;
mod tool_usage;
mod tools;
mod traces;
mod turn_inputs;
mod turn_results;
mod turns;

pub(crate) use self::background::OfStep;
pub use self::{
    audit::{
        AuditActor, AuditDetails, AuditEntry, AuditQuery, AuditTarget, AuditTrail, NewAuditEntry,
    },
    background::BackgroundResponse,
    backlog::{Backlog, Backlogs, DueChecks, WaitingApprovals},
    blobs::{Blob, BlobContent, Blobs, NewBlob, StoredBlob},
    budgets::{
        BudgetLimit, CutCall, CutCalls, DayBudget, Estimate, Exhausted, Reservation, Spent,
        TenantUsage, UsageBy, UsageCursor, UsageDay, UsageQuery,
    },
    chain::{ChainPosition, FailedCall, NotedFailure, Refusals, WaitingCall},
    connections::{ConnectionUsage, Connections},
    consents::{
        Consent, ConsentOf, ConsentRequest, Consents, GivenConsent, NewConsentRequest, TokenVersion,
    },
    conversations::{
        ConversationChange, Conversations, NewConversation, ResumePoint, UnfinishedTurn,
    },
    events::{
        ApprovedCall, ConversationHead, EventLinks, EventLog, EventPage, EventReader, WantedLinks,
    },
    executions::{
        AgentExecution, AgentExecutionCursor, AgentExecutions, Checkpoint, ParentCall, StepUsage,
        ToolExecution,
    },
    failures::{AgentFailure, FailureCount, FailureCursor, FailureFilter, Failures},
    keys::{ApiKey, KeyKind, KeyMaker, Keys, NewKey, SessionsOf},
    leases::{
        LeftOut, LeftOutTool, LostWorkers, MAX_LEFT_OUT_TOOLS, RunningAgentExecution, SeenLease,
        WorkerId, WorkerLease, WorkerLeases,
    },
    lists::{
        Activity, Conversation, ListCursor, ListFilter, ListPage, ListQuery, ListVersion,
        ListedConversation, MAX_SCANNED, ShownConversation,
    },
    messages::{MessageCancel, MessageQueue, NewMessage, QueuedMessage, RetryTurn, TakenBy},
    model_calls::ModelCalls,
    outside::{
        ClientToolClaim, InboxCall, InboxCursor, NewAnswer, NotedAnswer, OutcomeRefusal,
        OutsideTool, OutsideTools, PersonsOutcome, Proposal, ResultSender, SettledOutcome,
    },
    owners::{ChangedOwner, OwnerChange, OwnerRefusal, OwnerState, Owners, Reach, RefusedOwner},
    page_limit::PageLimit,
    past_calls::{FailedTry, PastCall, PastCallContent, PastCalls, PastInput, PastTry, TriesOf},
    reconciliation::{
        CheckNote, CheckPace, DueBatch, DueCheck, DueHooks, Reconciliation, TurnFailure,
        Unfinished, WaitingMessage,
    },
    retention::{Removed, RemovedBatch, Retention},
    saves::{AgentEnd, EventWriter, Saved, WaitingHooks},
    steps::{ClaimedCall, CompletedStep, StepClaim, StepClaims, StepKey},
    tenants::{TenantSummary, TenantUsageCursor, TenantUsageDay, Tenants, TenantsUsageQuery},
    tool_results::{ResultRange, ResultSlice, ToolResults},
    tool_usage::{ToolUsageDay, ToolUsageQuery},
    tools::{
        DefinedTool, ToolCaller, ToolClaim, ToolClaims, ToolEnd, ToolKey, ToolRecord, ToolResult,
    },
    traces::{KeptTrace, TraceContext, TraceContexts, TraceKey},
    turn_inputs::{ContextMessage, ModelContext, ReadBefore, TurnInputs},
    turn_results::{McpCall, McpCallCursor, TurnResult, TurnResults, TurnState, mcp_message_id},
    turns::{BeginTurn, BegunTurn, OnUnknownAgent, PinnedAgent, TurnStart, Turns},
};
pub use crate::error::Result;

/// The caller's rights to conversations. Every query for a caller has these rights. Rows outside them seem not to
/// exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash, sqlx::FromRow)]
pub struct Access {
    /// The tenant of the visible conversations.
    pub tenant_id: String,
    /// The owner of the visible conversations; `None`: any owner of the tenant.
    pub owner_id: Option<String>,
}

impl Access {
    /// Returns the id of the tenant's conversation with this name.
    pub fn id_of(&self, name: &str) -> String {
        let tenant_id = &self.tenant_id;
        ConversationName { tenant_id, name }.id()
    }

    /// Makes the rights to every conversation of a tenant.
    pub fn tenant(tenant_id: impl Into<String>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            owner_id: None,
        }
    }

    /// Makes the rights to one owner's conversations.
    pub fn owner(tenant_id: impl Into<String>, owner_id: impl Into<String>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            owner_id: Some(owner_id.into()),
        }
    }

    /// Returns true if the caller may see data of the tenant and owner.
    pub fn sees(&self, tenant_id: &str, owner_id: Option<&str>) -> bool {
        let is_owner = self.owner_id.is_none() || self.owner_id.as_deref() == owner_id;
        self.tenant_id == tenant_id && is_owner
    }
}
