//! Reads the tree of agent executions. Every method is one statement.

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::agent_executions::{self as statements, AgentExecutionsOfTurn},
};
use crate::api::{
    Access, AgentExecution, AgentExecutionCursor, AgentExecutions, Checkpoint, Result, StepUsage,
    ToolExecution,
};

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
