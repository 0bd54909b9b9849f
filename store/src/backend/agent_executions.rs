//! Reads the tree of agent executions. Every method is one statement.

use async_trait::async_trait;

use super::{
    Database,
    dialect::words,
    sql::{self, agent_executions},
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
        let text = match turn {
            None => agent_executions::AGENT_EXECUTIONS,
            Some(_) => agent_executions::AGENT_EXECUTIONS_OF_TURN,
        };
        let mut query = sql::for_caller(words(text), access, conversation_id)
            .bind(started_at)
            .bind(id)
            .bind(i64::from(limit));
        if let Some(message_id) = turn {
            query = query.bind(message_id);
        }
        self.read(query.fetch_all(self.reader())).await
    }

    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>> {
        let query = sql::for_caller(
            words(agent_executions::AGENT_EXECUTION),
            access,
            conversation_id,
        );
        let query = query.bind(id);
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn step_usage(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        limit: u32,
    ) -> Result<Vec<StepUsage>> {
        let query = sql::for_caller(agent_executions::STEP_USAGE, access, conversation_id)
            .bind(id)
            .bind(i64::from(limit));
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
        let query = sql::for_caller(agent_executions::CHECKPOINTS, access, conversation_id)
            .bind(id)
            .bind(i64::from(limit));
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
        let query = sql::for_caller(agent_executions::TOOL_EXECUTIONS, access, conversation_id)
            .bind(id)
            .bind(i64::from(limit));
        let mut tools: Vec<ToolExecution> = self.read(query.fetch_all(self.reader())).await?;
        tools.reverse();
        Ok(tools)
    }
}
