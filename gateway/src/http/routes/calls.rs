//! LLM calls of an agent execution: a list with the facts of each call, and a call with its content.

use axum::{Json, extract::State};
use everturn_proto::{limits::MAX_CONTEXT_BYTES, money, words::FinishReason};
use everturn_store::{PageLimit, PastCall, PastTry, TriesOf};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema, openapi::schema::Object};

use super::call_content::{AnsweredBody, SentBody};
use super::call_tries::{MAX_TRIES, TriesBody, UnansweredBody, by_step};
use super::stored_results::milliseconds;
use super::usage::UsageBody;
use super::wire::{bytes_of, checked_limit, cut, time};
use crate::{
    http::{
        extract::{CallPath, Caller, ExecutionPath, Params},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::one_of,
};

/// Calls of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 100;

/// An LLM call with a stored answer, without its content.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelCall)]
pub(super) struct CallBody {
    /// The number of the step, from 0.
    step: u32,
    /// Number of the attempt that answered, counted from 1 over the agent execution's LLM calls. Missing numbers are failed
    /// or interrupted attempts.
    generation: u32,
    /// Name of the provider in the configuration.
    provider: String,
    model: String,
    /// End of the answer. `compacted`: the call made a summary of older messages. `step_limit`: the agent had no steps left,
    /// and the model summarized its work.
    #[schema(schema_with = finishes)]
    finish: String,
    /// Time when a worker began the attempt that answered; null for a call of an earlier version.
    #[schema(required = true)]
    started_at: Option<String>,
    /// Time when the answer was stored.
    stored_at: String,
    /// Milliseconds between both times, including the last wait in a slot for the limits of the provider.
    #[schema(required = true)]
    duration_ms: Option<u32>,
    usage: UsageBody,
    /// Cost of the call, in USD; null when the model has no price.
    #[schema(required = true, example = "0.0012")]
    cost_usd: Option<String>,
    /// Number of messages that the model was sent; null when no model was called: a compaction left messages out without a
    /// summary.
    #[schema(required = true)]
    sent_messages: Option<u32>,
    /// Characters of the instructions and the messages.
    #[schema(required = true)]
    sent_characters: Option<u32>,
    /// Number of tools that the model was offered. The call's content names them.
    #[schema(required = true)]
    offered_tools: Option<usize>,
    /// Number of files that the model was sent, at most 100. The call's content names them.
    #[schema(required = true)]
    sent_files: Option<usize>,
    /// Characters of the reply: of the text, the reasoning and the inputs of the tool calls.
    #[schema(required = true)]
    received_characters: Option<u32>,
    tries: TriesBody,
}

impl CallBody {
    fn new(call: PastCall, tries: Vec<PastTry>) -> Self {
        Self {
            tries: tries.into(),
            step: call.step,
            generation: call.generation,
            provider: call.provider.unwrap_or_default(),
            model: call.model.unwrap_or_default(),
            finish: call.finish.into(),
            duration_ms: call
                .started_at
                .map(|from| milliseconds(from, call.stored_at)),
            started_at: call.started_at.map(time),
            stored_at: time(call.stored_at),
            usage: call.spent.usage.into(),
            cost_usd: call.spent.nano_usd.map(money::usd),
            sent_messages: call.sent.as_ref().map(|sent| sent.messages),
            sent_characters: call.sent.as_ref().map(|sent| sent.characters),
            offered_tools: call.sent.as_ref().map(|sent| sent.tools.len()),
            sent_files: call.sent.as_ref().map(|sent| sent.files.len()),
            received_characters: call.sent.as_ref().map(|sent| sent.received_characters),
        }
    }
}

fn finishes() -> Object {
    let finishes = [
        FinishReason::Stop,
        FinishReason::ToolCalls,
        FinishReason::Compacted,
        FinishReason::StepLimit,
    ];
    one_of(&finishes.each_ref().map(FinishReason::as_str))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Maximum number of calls of the page.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// `next_after` of the page before: the step of the page's last call.
    #[param(minimum = 0, maximum = 4_294_967_295_u32)]
    after: Option<u32>,
}

/// A page of LLM calls.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelCalls)]
pub(super) struct CallPageBody {
    /// LLM calls, in the order of their steps.
    calls: Vec<CallBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<u32>,
    /// The step whose LLM call has tries and no answer yet, or failed; null on every page but the last.
    #[schema(required = true)]
    unanswered: Option<UnansweredBody>,
}

problems!(ListRefusals: InvalidId, InvalidParameter, ConversationNotFound, AgentExecutionNotFound);

/// Lists the LLM calls of an agent execution, without their content, in the order of their steps.
#[utoipa::path(
    get, path = "/conversations/{id}/executions/{execution_id}/calls", tag = "executions", operation_id = "list_calls",
    params(ExecutionPath, ListQuery), responses((status = 200, body = CallPageBody, description = "A page"), ListRefusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    Params(query): Params<ListQuery>,
) -> Result<Json<CallPageBody>, Problem> {
    let limit = checked_limit(query.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let conversation_id = execution_of(&state, &caller, &path).await?;
    let _room = state
        .room(&caller, bytes_of(PageLimit::rows(limit)))
        .await?;
    let (access, id) = (&caller.access, &path.execution_id);
    let calls = &state.ports.past_calls;
    // An extra row beyond `limit` shows that a next page exists.
    let mut page = calls
        .past_calls(access, &conversation_id, id, query.after, limit + 1)
        .await?;
    let next_after = cut(&mut page, limit).map(|call| call.step);
    let steps = TriesOf {
        after: query.after,
        through: next_after,
    };
    let tries = calls.failed_tries(access, &conversation_id, id, steps, MAX_TRIES);
    let mut tries = by_step(tries.await?);
    let bodies = page.into_iter().map(|call| {
        let of_step = tries.remove(&call.step).unwrap_or_default();
        CallBody::new(call, of_step)
    });
    let bodies = bodies.collect();
    let unanswered = tries.pop_last().map(|(step, tries)| UnansweredBody {
        step,
        tries: tries.into(),
    });
    Ok(Json(CallPageBody {
        next_after,
        calls: bodies,
        unanswered,
    }))
}

/// Returns the id of the conversation. Refuses an agent execution that the conversation does not have.
async fn execution_of(
    state: &GatewayState,
    caller: &Caller,
    path: &ExecutionPath,
) -> Result<String, Problem> {
    let (access, id) = (&caller.access, &path.execution_id);
    let conversation = state.conversation(caller, &path.conversation).await?.id;
    let executions = &state.ports.executions;
    let found = executions
        .agent_execution(access, &conversation, id)
        .await?;
    found.map(|_| conversation).ok_or_else(|| {
        let detail = format!("The conversation has no agent execution `{id}`.");
        Problem::new(Code::AgentExecutionNotFound, detail)
    })
}

/// An LLM call with its content.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelCallContent)]
pub(super) struct CallContentBody {
    #[serde(flatten)]
    call: CallBody,
    /// What the model was sent; null when no model was called.
    #[schema(required = true)]
    sent: Option<SentBody>,
    answered: AnsweredBody,
}

problems!(Refusals: InvalidId, InvalidParameter, ConversationNotFound, AgentExecutionNotFound, CallNotFound);

/// Shows an LLM call with what the model was sent and what the model answered.
///
/// Needs the scope `calls` beside `read`, because the answer has the agent's instructions. The messages are read from
/// the conversation, and therefore are gone with the conversation.
#[utoipa::path(
    get, path = "/conversations/{id}/executions/{execution_id}/calls/{step}", tag = "executions", operation_id = "show_call",
    params(CallPath), responses((status = 200, body = CallContentBody, description = "The LLM call"), Refusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    CallPath { execution, step }: CallPath,
) -> Result<Json<CallContentBody>, Problem> {
    let conversation_id = execution_of(&state, &caller, &execution).await?;
    let _room = state.room(&caller, MAX_CONTEXT_BYTES as usize).await?;
    let (access, id) = (&caller.access, &execution.execution_id);
    let calls = &state.ports.past_calls;
    let facts = calls.past_calls(access, &conversation_id, id, step.checked_sub(1), 1);
    let content = calls.past_call(access, &conversation_id, id, step);
    let steps = TriesOf {
        after: step.checked_sub(1),
        through: Some(step),
    };
    let tries = calls.failed_tries(access, &conversation_id, id, steps, MAX_TRIES);
    let (facts, content, tries) = futures::try_join!(facts, content, tries)?;
    let facts = facts.into_iter().find(|call| call.step == step);
    let (Some(facts), Some(content)) = (facts, content) else {
        let detail = format!("The agent execution `{id}` has no answer of a model at step {step}.");
        return Err(Problem::new(Code::CallNotFound, detail));
    };
    let most = state.config.max_call_bytes;
    let sent = content
        .input
        .map(|input| SentBody::new(input, &content.state, content.agent, most));
    Ok(Json(CallContentBody {
        call: CallBody::new(facts, tries),
        sent,
        answered: AnsweredBody::from(content.state),
    }))
}
