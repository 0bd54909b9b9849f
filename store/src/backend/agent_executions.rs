//! Reads the tree of agent executions. Every method is one statement.

use async_trait::async_trait;
use sqlx::{FromRow, types::Json as Column};

use super::{
    Database,
    statement::Statement as _,
    statements::agent_executions::{self as statements, AgentExecutionsOfTurn, RefusedCalls},
};
use crate::api::{
    Access, AgentExecution, AgentExecutionCursor, AgentExecutions, ChainPosition, Checkpoint,
    OfStep, Result, StepUsage, ToolExecution, WaitingCall,
};

/// The most agent executions of a turn that are searched for a waiting call: more than an agent may have sub-agents.
const MAX_RUNNING: i64 = 1001;

/// A running agent execution with the note of its last failed call.
#[derive(FromRow)]
struct RefusedRow {
    id: String,
    generation: i64,
    model_chain: Column<OfStep<ChainPosition>>,
}

impl RefusedRow {
    /// Returns the refused call; `None` when the next call was made, or when the call failed otherwise.
    fn waiting(self) -> Option<WaitingCall> {
        let OfStep { step, value } = self.model_chain.0;
        let refused = value.refused?;
        let is_last = i64::from(refused.generation) == self.generation;
        is_last.then_some(WaitingCall {
            agent_execution_id: self.id,
            step,
            refused,
        })
    }
}

#[async_trait]
impl AgentExecutions for Database {
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        turn: Option<&str>,
        after: Option<AgentExecutionCursor>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>> {
        // Without a cursor the list begins at the Unix epoch, because every agent execution is younger.
        let AgentExecutionCursor { started_at, id } = after.unwrap_or_default();
        let (tenant_id, owner_id) = (&access.tenant_id, access.owner_id.as_deref());
        let query = match turn {
            None => statements::AgentExecutions {
                conversation_id,
                tenant_id,
                owner_id,
                after_started_at: started_at,
                after_id: &id,
                row_limit: i64::from(limit),
            }
            .query_as()?,
            Some(message_id) => AgentExecutionsOfTurn {
                conversation_id,
                tenant_id,
                owner_id,
                after_started_at: started_at,
                after_id: &id,
                row_limit: i64::from(limit),
                message_id,
            }
            .query_as()?,
        };
        self.read(query.fetch_all(self.reader())).await
    }

    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>> {
        let select = statements::AgentExecution {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id: id,
        };
        let query = select.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn waiting_call(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<WaitingCall>> {
        let select = RefusedCalls {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            row_limit: MAX_RUNNING,
        };
        let query = select.query_as()?;
        let rows: Vec<RefusedRow> = self.read(query.fetch_all(self.reader())).await?;
        let waiting = rows.into_iter().filter_map(RefusedRow::waiting);
        Ok(waiting.min_by_key(|call| call.refused.next_try_at))
    }

    async fn step_usage(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<StepUsage>> {
        let select = statements::StepUsage {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id: id,
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        let mut steps: Vec<StepUsage> = self.read(query.fetch_all(self.reader())).await?;
        steps.reverse();
        Ok(steps)
    }

    async fn checkpoints(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<Checkpoint>> {
        let select = statements::Checkpoints {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id: id,
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        let mut checkpoints: Vec<Checkpoint> = self.read(query.fetch_all(self.reader())).await?;
        checkpoints.reverse();
        Ok(checkpoints)
    }

    async fn tool_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<ToolExecution>> {
        let select = statements::ToolExecutions {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id: id,
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        let mut tools: Vec<ToolExecution> = self.read(query.fetch_all(self.reader())).await?;
        tools.reverse();
        Ok(tools)
    }
}
