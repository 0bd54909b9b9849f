//! The tree of agent executions (D4): turns and their sub-agents, each with the tool call that started it.

use axum::{Json, extract::State};
use chrono::{DateTime, SecondsFormat, Utc};
use everturn_store::{Execution, ExecutionPlace, ParentCall};
use serde::{Deserialize, Serialize};

use crate::{
    extract::{Caller, ConversationId, ExecutionPath, Params},
    problem::{Code, Problem},
    state::GatewayState,
};

/// Executions of a page when the request does not say, and at the most.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 200;

#[derive(Serialize)]
pub(super) struct Shown {
    id: String,
    message_id: String,
    agent: String,
    status: String,
    depth: u32,
    parent_execution_id: Option<String>,
    root_execution_id: String,
    steps: u32,
    error_code: Option<String>,
    input_tokens: u32,
    output_tokens: u32,
    started_at: String,
    finished_at: Option<String>,
    /// What started it; null for a turn.
    #[serde(rename = "parentActToolCall")]
    parent_call: Option<ShownCall>,
}

#[derive(Serialize)]
struct ShownCall {
    execution_id: String,
    call_id: String,
    tool_name: String,
    tool_input: everturn_proto::Json,
}

impl From<Execution> for Shown {
    fn from(execution: Execution) -> Self {
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let call = |call: ParentCall| ShownCall {
            execution_id: call.execution_id,
            call_id: call.call_id,
            tool_name: call.tool_name,
            tool_input: call.tool_input,
        };
        Self {
            id: execution.id,
            message_id: execution.message_id,
            agent: execution.agent,
            status: execution.status,
            depth: execution.depth,
            parent_execution_id: execution.parent_execution_id,
            root_execution_id: execution.root_execution_id,
            steps: execution.steps,
            error_code: execution.error_code,
            input_tokens: execution.input_tokens,
            output_tokens: execution.output_tokens,
            started_at: time(execution.started_at),
            finished_at: execution.finished_at.map(time),
            parent_call: execution.parent_call.map(call),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    limit: Option<u32>,
    after: Option<String>,
}

#[derive(Serialize)]
pub(super) struct List {
    executions: Vec<Shown>,
    next_after: Option<String>,
}

/// `GET /conversations/{id}/executions`: a flat list in the order of their beginnings.
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Params(query): Params<ListQuery>,
) -> Result<Json<List>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::new(Code::InvalidParameter, format!("`limit` is 1 to {MAX_LIMIT}.")));
    }
    let after = query.after.as_deref().map(parse_place).transpose()?;
    state.conversation(&caller, &id).await?;
    // One more than asked for tells whether there is another page.
    let mut page = state.ports.executions.executions(&caller.access, &id, after, limit + 1).await?;
    let has_more = page.len() > limit as usize;
    page.truncate(limit as usize);
    let next_after = page.last().filter(|_| has_more).map(format_place);
    Ok(Json(List { executions: page.into_iter().map(Shown::from).collect(), next_after }))
}

/// A place as clients carry it: they need not understand it.
fn format_place(execution: &Execution) -> String {
    format!("{}~{}", execution.started_at.to_rfc3339_opts(SecondsFormat::Nanos, true), execution.id)
}

fn parse_place(text: &str) -> Result<ExecutionPlace, Problem> {
    let place = text.split_once('~').and_then(|(time, id)| {
        let started_at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        Some(ExecutionPlace { started_at, id: id.to_owned() })
    });
    place.ok_or_else(|| Problem::new(Code::InvalidParameter, "`after` is the `next_after` of the page before."))
}

/// `GET /conversations/{id}/executions/{execution_id}`.
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ExecutionPath { conversation_id, execution_id }: ExecutionPath,
) -> Result<Json<Shown>, Problem> {
    state.conversation(&caller, &conversation_id).await?;
    let found = state.ports.executions.execution(&caller.access, &conversation_id, &execution_id).await?;
    let found = found.ok_or_else(|| {
        let detail = format!("The conversation has no agent execution `{execution_id}`.");
        Problem::new(Code::AgentExecutionNotFound, detail)
    })?;
    Ok(Json(found.into()))
}
