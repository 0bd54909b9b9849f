//! A tenant's usage of models and tools, by day, and by model, agent or tool.

use axum::{Json, extract::State};
use chrono::{Days, NaiveDate, Utc};
use everturn_proto::{event::Usage, ids, money};
use everturn_store::{
    TenantUsageCursor, ToolUsageDay, ToolUsageQuery, UsageBy, UsageCursor, UsageDay, UsageQuery,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::wire::{checked_limit, cut};
use crate::{
    http::{
        extract::{Caller, Params},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::Id,
};

/// Rows of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// Days from the default `from` until `to`.
const DEFAULT_DAYS: Days = Days::new(30);

/// Tokens of LLM calls.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
// The wire names its fields.
#[allow(clippy::struct_field_names)]
pub(super) struct UsageBody {
    /// Tokens read, including cached tokens.
    input_tokens: u64,
    /// Tokens written, including reasoning tokens.
    output_tokens: u64,
    /// Tokens read from the provider's cache; included in `input_tokens`.
    cached_tokens: u64,
    /// Tokens written to the provider's cache; included in `input_tokens`.
    cache_write_tokens: u64,
    /// Tokens of the reasoning; included in `output_tokens`.
    reasoning_tokens: u64,
    /// True if a provider counted no tokens for a call, and the numbers include Everturn's estimate.
    estimated: bool,
}

impl From<Usage> for UsageBody {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens.into(),
            output_tokens: usage.output_tokens.into(),
            cached_tokens: usage.cached_tokens.into(),
            cache_write_tokens: usage.cache_write_tokens.into(),
            reasoning_tokens: usage.reasoning_tokens.into(),
            estimated: usage.estimated,
        }
    }
}

/// The kind of the sums.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UsageBy)]
pub(super) enum By {
    /// A sum for each model.
    #[default]
    Model,
    /// A sum for each agent.
    Agent,
    /// A sum of tool calls for each tool.
    Tool,
}

impl By {
    /// Returns the kind of the sums of LLM calls; `None` for sums of tool calls.
    pub(super) fn of_llm_calls(self) -> Option<UsageBy> {
        match self {
            Self::Model => Some(UsageBy::Model),
            Self::Agent => Some(UsageBy::Agent),
            Self::Tool => None,
        }
    }
}

/// Usage of a model, or of an agent, by a tenant on a day.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageDay)]
pub(super) struct UsageDayBody {
    /// The day, in UTC.
    #[schema(example = "2026-11-30")]
    day: String,
    /// `provider/model`; null in sums by agent.
    #[schema(required = true, example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// The agent; null in sums by model.
    #[schema(required = true)]
    agent: Option<String>,
    /// Number of LLM calls with a stored answer.
    calls: u64,
    usage: UsageBody,
    /// Cost of the calls, in USD. Calls of a model without a price count as 0.
    #[schema(example = "1.2305")]
    cost_usd: String,
    /// Calls that were cut before their answers were stored; not included in `calls`.
    cut_calls: u64,
    /// Maximum tokens used by the cut calls.
    cut_tokens: u64,
    /// Maximum cost of the cut calls, in USD.
    #[schema(example = "0.04")]
    cut_cost_usd: String,
}

impl From<UsageDay> for UsageDayBody {
    fn from(day: UsageDay) -> Self {
        Self {
            day: day.day,
            model: day.model,
            agent: day.agent,
            calls: day.calls,
            usage: UsageBody {
                input_tokens: day.input_tokens,
                output_tokens: day.output_tokens,
                cached_tokens: day.cached_tokens,
                cache_write_tokens: day.cache_write_tokens,
                reasoning_tokens: day.reasoning_tokens,
                estimated: day.estimated_calls > 0,
            },
            cost_usd: money::usd(day.nano_usd),
            cut_calls: day.cut_calls,
            cut_tokens: day.cut_tokens,
            cut_cost_usd: money::usd(day.cut_nano_usd),
        }
    }
}

/// Calls of a tool by a tenant on a day. A call counts on the day on which its agent execution ends.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolUsageDay)]
pub(super) struct ToolUsageDayBody {
    /// The day, in UTC.
    #[schema(example = "2026-11-30")]
    day: String,
    /// The tool.
    #[schema(example = "search")]
    tool: String,
    /// Number of calls.
    calls: u64,
    /// Calls with an error as their result: the tool failed, or the call was denied, cancelled or cut.
    failed_calls: u64,
    /// Time of the calls together, in milliseconds.
    duration_ms: u64,
}

impl From<ToolUsageDay> for ToolUsageDayBody {
    fn from(day: ToolUsageDay) -> Self {
        Self {
            day: day.day,
            tool: day.tool,
            calls: day.calls,
            failed_calls: day.failed_calls,
            duration_ms: day.duration_ms,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageParams {
    /// The kind of the sums. By default `model`.
    #[param(inline)]
    by: Option<By>,
    /// Only the calls of the agent, without the agent's sub-agents.
    #[param(value_type = Option<Id>, example = "support")]
    agent: Option<String>,
    /// The first day, in UTC. By default 30 days before `to`.
    #[param(example = "2026-11-01", format = Date)]
    from: Option<String>,
    /// The last day, in UTC. By default today.
    #[param(example = "2026-11-30", format = Date)]
    to: Option<String>,
    /// Rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next_after` of the page before. Treat the value as opaque, because its format may change.
    #[param(example = "2026-11-30~openai/gpt-5-mini")]
    after: Option<String>,
}

/// A page of sums.
#[derive(Serialize, ToSchema)]
#[schema(as = UsagePage)]
pub(super) struct UsagePageBody {
    /// The rows, ordered by day, and by model or agent. Empty with `by=tool`.
    usage: Vec<UsageDayBody>,
    /// With `by=tool`: the rows, ordered by day and tool. Otherwise empty.
    tools: Vec<ToolUsageDayBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

problems!(Refusals: InvalidParameter);

/// Lists the tenant's usage of models and tools, by day, and by model, agent or tool.
///
/// A credential with an owner cannot read the sums, because the sums cover the whole tenant.
#[utoipa::path(
    get, path = "/usage", tag = "usage", operation_id = "list_usage", params(UsageParams),
    responses((status = 200, body = UsagePageBody, description = "A page"), Refusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<UsageParams>,
) -> Result<Json<UsagePageBody>, Problem> {
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let (from, to) = days(params.from.as_deref(), params.to.as_deref())?;
    let after = params.after.as_deref().map(parse_cursor).transpose()?;
    let agent = params.agent.map(checked_agent).transpose()?;
    let (tenant_id, usage) = (&caller.access.tenant_id, &state.ports.usage);
    let (mut llm_calls, mut tool_calls) = (Vec::new(), Vec::new());
    let of_page = limit + 1;
    if caller.access.owner_id.is_some() {
        // The sums cover the whole tenant.
    } else if let Some(by) = params.by.unwrap_or_default().of_llm_calls() {
        let query = UsageQuery {
            by,
            agent,
            from,
            to,
            after,
            limit: of_page,
        };
        llm_calls = usage.usage_days(tenant_id, &query).await?;
    } else {
        let query = ToolUsageQuery {
            tenant_id: Some(tenant_id.clone()),
            agent,
            from,
            to,
            after: after.map(|of_tenant| TenantUsageCursor {
                tenant_id: tenant_id.clone(),
                of_tenant,
            }),
            limit: of_page,
        };
        tool_calls = usage.tool_usage(&query).await?;
    }
    let token = |day: &str, name: &str| format!("{day}~{name}");
    let next_day = cut(&mut llm_calls, limit).map(|last| token(&last.day, last.name()));
    let next_tool = cut(&mut tool_calls, limit).map(|last| token(&last.day, &last.tool));
    Ok(Json(UsagePageBody {
        usage: llm_calls.into_iter().map(UsageDayBody::from).collect(),
        tools: (tool_calls.into_iter())
            .map(ToolUsageDayBody::from)
            .collect(),
        next_after: next_day.or(next_tool),
    }))
}

/// Checks the name of an agent. An unknown agent is allowed, because the configuration may have lost the agent since.
pub(super) fn checked_agent(agent: String) -> Result<String, Problem> {
    match ids::check(&agent) {
        Ok(()) => Ok(agent),
        Err(reason) => {
            let detail = format!("An agent {reason}.");
            Err(Problem::new(Code::InvalidParameter, detail))
        }
    }
}

/// Reads the first and the last day of the sums.
pub(super) fn days(from: Option<&str>, to: Option<&str>) -> Result<(String, String), Problem> {
    let to = to.map(|to| day("to", to)).transpose()?;
    let to = to.unwrap_or_else(|| Utc::now().date_naive());
    let from = from.map(|from| day("from", from)).transpose()?;
    let from = from.or_else(|| to.checked_sub_days(DEFAULT_DAYS));
    let from = from.unwrap_or(NaiveDate::MIN);
    Ok((from.to_string(), to.to_string()))
}

/// Parses a day. Only years with four digits are accepted, because the store compares days as texts.
fn day(parameter: &str, text: &str) -> Result<NaiveDate, Problem> {
    let is_plain = |day: &NaiveDate| text.len() == 10 && day.to_string() == text;
    let day = text.parse().ok().filter(is_plain);
    day.ok_or_else(|| {
        let detail = format!("`{parameter}` must be a day like 2026-11-30.");
        Problem::new(Code::InvalidParameter, detail)
    })
}

fn parse_cursor(token: &str) -> Result<UsageCursor, Problem> {
    let parse_cursor = token.split_once('~').filter(|_| !token.contains('\0'));
    let parse_cursor = parse_cursor.map(|(day, name)| UsageCursor {
        day: day.to_owned(),
        name: name.to_owned(),
    });
    let detail = "`after` must be the `next_after` of the previous page.";
    parse_cursor.ok_or_else(|| Problem::new(Code::InvalidParameter, detail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_day_is_written_in_one_way() {
        assert!(day("from", "2026-11-30").is_ok());
        for other in [
            "-00000-1-1",
            "2026-1-030",
            "+2026-11-3",
            "2026-02-30",
            "20261130",
        ] {
            assert!(day("from", other).is_err(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_day_and_a_cursor_or_is_refused(text in "\\PC{0,20}", like in "[0-9-]{10}", model in "[^\\x00]{0,20}") {
            for text in [&text, &like] {
                match day("from", text) {
                    Ok(day) => prop_assert_eq!(&day.to_string(), text, "days are in the order of their texts"),
                    Err(problem) => prop_assert_eq!(problem.code(), Code::InvalidParameter),
                }
                let _ = parse_cursor(text).map_err(|problem| problem.code());
            }
            let read = parse_cursor(&format!("{like}~{model}")).map_err(|problem| problem.code());
            prop_assert_eq!(read, Ok(UsageCursor { day: like, name: model }));
        }
    }
}
