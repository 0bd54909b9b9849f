//! What the store can do, in small traits by who needs it. Every call that is made for a caller takes their [`Access`].
//!
//! - `events`: the event log, read. For gateways
//! - `conversations`, `lists`: conversations, the messages they accept, pages of the list. For gateways
//! - `audit`: who did what. For gateways and operators
//! - `background`: responses of models that run on at their provider. For workers
//! - `chain`: where a step is in the chain of its agent's models. For workers
//! - `turns`, `tools`: what a worker needs to run turns; tool executions, their claims and ends
//! - `outside`: tool calls that a person or the client answers. For gateways
//! - `blobs`: images and files. For gateways and workers
//! - `budgets`: what turns, conversations and tenants may take of models, and what tenants took. For workers and gateways
//! - `executions`: the tree of agent executions. For gateways
//! - `tool_results`: whole results of tools, in slices. For gateways and workers
//! - `page_limit`: how much is read at a time
//! - `connections`: how many connections a store has. For metrics
//! - `keys`: API keys and browser sessions. For gateways and operators
//! - `leases`: which worker processes live. For workers and gateways
//! - `reconciliation`: what was accepted and has not ended. For gateways
//! - `traces`: the traces that turns belong to. For gateways and workers
//! - `tenants`: what is known of tenants. For gateways
//! - `retention`: the removal of what is old. For operators
//!
//! Types whose fields are columns are read from rows as they are (`sqlx::FromRow`). Must not be here: statements, and
//! whatever else only one database knows.

mod audit;
mod background;
mod blobs;
mod budgets;
mod chain;
mod connections;
mod conversations;
mod events;
mod executions;
mod keys;
mod leases;
mod lists;
mod outside;
mod page_limit;
mod reconciliation;
mod retention;
mod tenants;
mod tool_results;
mod tools;
mod traces;
mod turns;

pub(crate) use self::background::OfStep;
pub use self::{
    audit::{
        AuditActor, AuditDetails, AuditEntry, AuditQuery, AuditTarget, AuditTrail, NewAuditEntry,
    },
    background::BackgroundResponse,
    blobs::{Blob, BlobContent, Blobs, NewBlob, StoredBlob},
    budgets::{
        BudgetLimit, DayBudget, Estimate, Exhausted, Reservation, Spent, TenantUsage, UsageDay,
        UsagePlace, UsageQuery,
    },
    chain::{ChainPlace, FailedCall, NotedFailure},
    connections::{ConnectionUsage, Connections},
    conversations::{
        Conversations, NewConversation, NewMessage, QueuedMessage, ResumePoint, TakenBy,
        UnfinishedTurn,
    },
    events::{ConversationHead, EventLinks, EventLog, EventPage, EventReader, WantedLinks},
    executions::{
        AgentExecution, AgentExecutionPlace, AgentExecutions, Checkpoint, ParentCall, StepUsage,
        ToolExecution,
    },
    keys::{ApiKey, KeyKind, Keys, NewKey, SessionsOf},
    leases::{LostWorkers, RunningAgentExecution, SeenLease, WorkerId, WorkerLease, WorkerLeases},
    lists::{
        Activity, Conversation, ListFilter, ListPage, ListPlace, ListQuery, ListedConversation,
        MAX_SCANNED,
    },
    outside::{ClientToolClaim, NewAnswer, NotedAnswer, OutsideTool, OutsideTools, ResultSender},
    page_limit::PageLimit,
    reconciliation::{
        CheckNote, CheckPace, DueCheck, Reconciliation, TurnFailure, Unfinished, WaitingMessage,
    },
    retention::{Removed, RemovedBatch, Retention},
    tenants::{TenantSummary, TenantUsageDay, TenantUsagePlace, Tenants, TenantsUsageQuery},
    tool_results::{ResultRange, ResultSlice, ToolResults},
    tools::{
        DefinedTool, StepKey, ToolCaller, ToolClaim, ToolEnd, ToolKey, ToolRecord, ToolResult,
    },
    traces::{KeptTrace, TraceContext, TraceContexts, TraceKey},
    turns::{
        AgentEnd, BeginTurn, BegunTurn, ClaimedCall, CompletedStep, ContextMessage,
        ConversationOwner, ModelContext, OnUnknownAgent, PinnedAgent, ReadBefore, Saved, StepClaim,
        TurnStart, TurnStore,
    },
};
pub use crate::error::Result;

/// Who asks. It is part of every query that is made for a caller: what they may not see is as if it were not there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, sqlx::FromRow)]
pub struct Access {
    /// The tenant whose conversations they see.
    pub tenant_id: String,
    /// Only this owner's; `None`: every owner's of the tenant.
    pub owner_id: Option<String>,
}

impl Access {
    /// Every conversation of a tenant.
    pub fn tenant(tenant_id: impl Into<String>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            owner_id: None,
        }
    }

    /// One owner's conversations.
    pub fn owner(tenant_id: impl Into<String>, owner_id: impl Into<String>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            owner_id: Some(owner_id.into()),
        }
    }

    /// True when they may see what belongs to this tenant and owner.
    pub fn sees(&self, tenant_id: &str, owner_id: Option<&str>) -> bool {
        let is_owner = self.owner_id.is_none() || self.owner_id.as_deref() == owner_id;
        self.tenant_id == tenant_id && is_owner
    }
}
