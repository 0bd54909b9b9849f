//! Agent executions, and tool calls that someone outside answers.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    Thread,
    ids::AFTER_TURN_STEP,
    words::{ApprovalBy, ApprovalState, CheckpointType, Effect, ToolStatus},
};
use everturn_store::{
    Access, AgentExecution, AgentExecutionCursor, AgentExecutions, Checkpoint, ClientToolClaim,
    NewAnswer, NewAuditEntry, NotedAnswer, OutsideTool, OutsideTools, PageLimit, ResultRange,
    ResultSender, ResultSlice, StepUsage, TenantUsage, ToolEnd, ToolExecution, ToolResults,
    UsageCursor, UsageDay, UsageQuery,
};

use super::{MemoryStore, Result};

/// The workflow run that has claimed every call which runs.
const RUN_ID: &str = "run-1";

#[async_trait]
impl AgentExecutions for MemoryStore {
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        turn: Option<&str>,
        after: Option<AgentExecutionCursor>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>> {
        let tables = self.open()?;
        let of =
            |(id, _): &&(String, AgentExecution)| id == conversation_id && tables.shows(access, id);
        let place = after.unwrap_or_default();
        let is_behind =
            |row: &&AgentExecution| (row.started_at, &row.id) > (place.started_at, &place.id);
        let rows = tables
            .executions
            .iter()
            .filter(of)
            .map(|(_, row)| row)
            .filter(|row| turn.is_none_or(|turn| row.message_id == turn))
            .filter(is_behind);
        Ok(rows.take(limit as usize).cloned().collect())
    }

    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>> {
        let rows = self
            .agent_executions(access, conversation_id, None, None, u32::MAX)
            .await?;
        Ok(rows.into_iter().find(|row| row.id == id))
    }

    async fn step_usage(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        _limit: u32,
    ) -> Result<Vec<StepUsage>> {
        let found = self.agent_execution(access, conversation_id, id).await?;
        let step = |row: AgentExecution| StepUsage {
            step: 0,
            generation: 1,
            model: Some("m".to_owned()),
            spent: row.spent,
            stored_at: row.started_at,
        };
        Ok(found.into_iter().map(step).collect())
    }

    async fn checkpoints(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        _limit: u32,
    ) -> Result<Vec<Checkpoint>> {
        let found = self.agent_execution(access, conversation_id, id).await?;
        let checkpoint = |row: AgentExecution| Checkpoint {
            checkpoint_type: CheckpointType::LlmComplete,
            step: 0,
            execution_id: None,
            generation: 1,
            stored_at: row.started_at,
        };
        Ok(found.into_iter().map(checkpoint).collect())
    }

    async fn tool_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
        _limit: u32,
    ) -> Result<Vec<ToolExecution>> {
        let found = self.agent_execution(access, conversation_id, id).await?;
        let tool = |row: AgentExecution| ToolExecution {
            execution_id: "exec_1".to_owned(),
            call_id: "call_1".to_owned(),
            tool_name: "t".to_owned(),
            step: AFTER_TURN_STEP,
            status: ToolStatus::Pending,
            effect: Effect::Once,
            approval: ApprovalState::NotNeeded,
            attempts: 0,
            is_error: false,
            timeout_ms: 1000,
            duration_ms: 0,
            asked_at: row.started_at,
            started_at: None,
            finished_at: None,
        };
        Ok(found.into_iter().map(tool).collect())
    }
}

/// Each tenant has taken something of a model of its own, on each of the first three days of November 2026.
#[async_trait]
impl TenantUsage for MemoryStore {
    async fn usage_days(&self, tenant_id: &str, query: &UsageQuery) -> Result<Vec<UsageDay>> {
        let days = (1..=3).map(|day| UsageDay {
            day: format!("2026-11-0{day}"),
            model: format!("of/{tenant_id}"),
            calls: 1,
            nano_usd: 1_500_000,
            ..UsageDay::default()
        });
        let is_asked = |row: &UsageDay| {
            let place = Some(UsageCursor {
                day: row.day.clone(),
                model: row.model.clone(),
            });
            (&query.from..=&query.to).contains(&&row.day) && place > query.after
        };
        Ok(days.filter(is_asked).take(query.limit as usize).collect())
    }

    async fn forget_usage(&self, _before_day: &str) -> Result<u64> {
        Ok(0)
    }
}

#[async_trait]
impl OutsideTools for MemoryStore {
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<OutsideTool>> {
        let tables = self.open()?;
        let of =
            |(id, _): &&(String, OutsideTool)| id == conversation_id && tables.shows(access, id);
        let waits = |tool: &&OutsideTool| tool.needs_approval() || tool.needs_result();
        let waiting = tables
            .outside
            .iter()
            .filter(of)
            .map(|(_, tool)| tool)
            .filter(waits);
        Ok(waiting.take(limit.rows as usize).cloned().collect())
    }

    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>> {
        let tables = self.open()?;
        let is_it = |(id, tool): &&(String, OutsideTool)| {
            id == conversation_id
                && tables.shows(access, id)
                && tool.record.call.execution_id == execution_id
        };
        Ok(tables
            .outside
            .iter()
            .find(is_it)
            .map(|(_, tool)| tool.clone()))
    }

    async fn store_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        sender: ResultSender<'_>,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>> {
        let is_awaited = |tool: &OutsideTool| match sender {
            ResultSender::Client => tool.needs_result(),
            ResultSender::RemoteTool { run_id } => {
                tool.record.status == ToolStatus::Running && run_id == RUN_ID
            }
        };
        for (id, tool) in &mut self.open()?.outside {
            if id == conversation_id
                && tool.record.call.execution_id == execution_id
                && is_awaited(tool)
            {
                tool.record.status.clone_from(&end.status);
                tool.record.end = Some(end.clone());
            }
        }
        self.outside_tool(access, conversation_id, execution_id)
            .await
    }

    async fn note_answer(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        answer: NewAnswer<'_>,
        audit: Option<&NewAuditEntry>,
    ) -> Result<NotedAnswer> {
        let tool = self.outside_tool(access, conversation_id, execution_id);
        let Some(tool) = tool.await? else {
            return Ok(NotedAnswer::TooMany);
        };
        let needs_other = tool.record.call.rule().by() == ApprovalBy::Other;
        // Nobody but `boss` has sent no message.
        if answer.approves && needs_other && answer.answered_by != Some("boss") {
            return Ok(NotedAnswer::NeedsOther);
        }
        self.lock().audit.extend(audit.cloned());
        Ok(NotedAnswer::Noted)
    }

    async fn claim_client_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        claimant: &str,
        until: DateTime<Utc>,
    ) -> Result<Option<ClientToolClaim>> {
        let tool = self.outside_tool(access, conversation_id, execution_id);
        if !tool.await?.is_some_and(|tool| tool.needs_result()) {
            return Ok(None);
        }
        let mut tables = self.open()?;
        let known = tables.claims.iter_mut().find(|it| it.0 == execution_id);
        let Some((_, held_by, claims, held_until)) = known else {
            let claim = (execution_id.to_owned(), claimant.to_owned(), 1, until);
            tables.claims.push(claim);
            return Ok(Some(ClientToolClaim::Run { is_repeated: false }));
        };
        if held_by != claimant && *held_until > Utc::now() {
            return Ok(Some(ClientToolClaim::Held { until: *held_until }));
        }
        *claims += u32::from(held_by != claimant);
        *held_until = until;
        claimant.clone_into(held_by);
        let is_repeated = *claims > 1;
        Ok(Some(ClientToolClaim::Run { is_repeated }))
    }
}

#[async_trait]
impl ToolResults for MemoryStore {
    async fn tool_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let mut tables = self.open()?;
        tables.result_ranges.push(range);
        let found = tables.results.iter().find(|(conversation, execution, _)| {
            conversation == conversation_id
                && execution == execution_id
                && tables.shows(access, conversation)
        });
        Ok(found.map(|(.., slice)| slice.clone()))
    }

    async fn tool_result_of_thread(
        &self,
        _: &str,
        _: &Thread,
        _: &str,
        _: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        unreachable!("gateways read for callers")
    }
}
