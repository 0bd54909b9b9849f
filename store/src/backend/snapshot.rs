//! Loads what a batch reads, as `batch::needs` says.

use std::collections::BTreeSet;

use everturn_proto::{
    event::{PlanStepEnd, PlanStepStart, WorkPlan},
    ids,
    turn::SaveRequest,
    words::{checkpoint, event_type},
};

use super::{
    Connection,
    claims::load_checkpoint,
    dialect::{list, sql_error, words},
};
use crate::{
    api::{Result, StepKey},
    batch::{self, AssistantRow, Needs, Snapshot, ToolRow, ToolsNeeded},
    rows::{AssistantSqlRow, DelegationRow, PlanRow, ToolSqlRow, TotalsRow, UserMessageRow},
    sql,
};

/// Everything but `last_sequence` and `steps`, which the caller has from the lock.
pub(super) async fn load(connection: &mut Connection, request: &SaveRequest) -> Result<Snapshot> {
    let needs = batch::needs(request)?;
    let mut snapshot = Snapshot::default();
    let step = step_key(request);
    if needs.checkpoint {
        snapshot.checkpoint = load_checkpoint(connection, &step, checkpoint::LLM_COMPLETE).await?;
    }
    if needs.partial {
        snapshot.partial = load_checkpoint(connection, &step, checkpoint::LLM_PARTIAL).await?;
    }
    if needs.totals {
        let totals: TotalsRow = sqlx::query_as(sql::TOTALS)
            .bind(&request.agent_execution_id)
            .fetch_one(&mut *connection)
            .await
            .map_err(sql_error)?;
        snapshot.totals = totals.totals();
    }
    if let Some(message_id) = &needs.message {
        let message = load_message(connection, &request.conversation_id, message_id).await?;
        snapshot.message = message.as_ref().map(UserMessageRow::waiting);
    }
    if let Some(sub_agent) = &needs.delegation {
        let row: Option<DelegationRow> = sqlx::query_as(words(sql::DELEGATION))
            .bind(&request.conversation_id)
            .bind(sub_agent)
            .fetch_optional(&mut *connection)
            .await
            .map_err(sql_error)?;
        snapshot.delegation = row.map(DelegationRow::delegation).transpose()?;
    }
    snapshot.tools = load_tools(connection, request, &needs.tools).await?;
    snapshot.assistants = load_assistants(connection, request, &needs, &snapshot.tools).await?;
    snapshot.plans = load_plans(connection, request, &snapshot.tools).await?;
    Ok(snapshot)
}

/// A user's message.
pub(super) async fn load_message(
    connection: &mut Connection,
    conversation_id: &str,
    message_id: &str,
) -> Result<Option<UserMessageRow>> {
    sqlx::query_as(sql::USER_MESSAGE)
        .bind(conversation_id)
        .bind(message_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)
}

async fn load_tools(
    connection: &mut Connection,
    request: &SaveRequest,
    needed: &ToolsNeeded,
) -> Result<Vec<ToolRow>> {
    let query = match needed {
        ToolsNeeded::None => return Ok(Vec::new()),
        ToolsNeeded::Open => {
            sqlx::query_as(words(sql::OPEN_TOOLS)).bind(&request.agent_execution_id)
        }
        ToolsNeeded::One(execution_id) => sqlx::query_as(words(sql::TOOL_TO_OBSERVE))
            .bind(&request.conversation_id)
            .bind(&request.agent_execution_id)
            .bind(execution_id),
    };
    let rows: Vec<ToolSqlRow> = query.fetch_all(connection).await.map_err(sql_error)?;
    rows.into_iter().map(ToolSqlRow::tool).collect()
}

/// The assistant rows of the tools' steps and of the request's step.
async fn load_assistants(
    connection: &mut Connection,
    request: &SaveRequest,
    needs: &Needs,
    tools: &[ToolRow],
) -> Result<Vec<AssistantRow>> {
    let steps = tools
        .iter()
        .map(|tool| tool.step)
        .chain(needs.checkpoint.then_some(request.step));
    let row_ids: BTreeSet<String> = steps
        .map(|step| ids::assistant_message_id(&request.agent_execution_id, step))
        .collect();
    if row_ids.is_empty() {
        return Ok(Vec::new());
    }
    let row_ids: Vec<_> = row_ids.into_iter().collect();
    let query = sqlx::query_as(words(sql::ASSISTANT_ROWS))
        .bind(&request.conversation_id)
        .bind(list(&row_ids));
    let rows: Vec<AssistantSqlRow> = query.fetch_all(connection).await.map_err(sql_error)?;
    rows.into_iter().map(AssistantSqlRow::assistant).collect()
}

/// The plans that the tools' own events name.
async fn load_plans(
    connection: &mut Connection,
    request: &SaveRequest,
    tools: &[ToolRow],
) -> Result<Vec<WorkPlan>> {
    let events = tools
        .iter()
        .filter_map(|tool| tool.record.end.as_ref())
        .flat_map(|end| &end.events);
    let plan_ids: BTreeSet<String> = events
        .filter_map(|(event_type, data)| match event_type.as_str() {
            event_type::STEP_START => data
                .decode::<PlanStepStart>()
                .ok()
                .map(|start| start.plan_id),
            event_type::STEP_END => data.decode::<PlanStepEnd>().ok().map(|end| end.plan_id),
            _ => None,
        })
        .collect();
    if plan_ids.is_empty() {
        return Ok(Vec::new());
    }
    let plan_ids: Vec<_> = plan_ids.into_iter().collect();
    let query = sqlx::query_as(words(sql::PLANS))
        .bind(&request.conversation_id)
        .bind(list(&plan_ids));
    let rows: Vec<PlanRow> = query.fetch_all(connection).await.map_err(sql_error)?;
    Ok(rows.into_iter().map(WorkPlan::from).collect())
}

fn step_key(request: &SaveRequest) -> StepKey {
    StepKey {
        conversation_id: request.conversation_id.clone(),
        message_id: request.message_id.clone(),
        agent_execution_id: request.agent_execution_id.clone(),
        step: request.step,
    }
}
