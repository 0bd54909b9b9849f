//! Claims of client tools: of several clients that see a tool call, only the claimant runs the call. A claim ends at a
//! set time, because a client that died must not block the call.

use axum::{Json, extract::State};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_store::{ClientToolClaim, OutsideTool};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{client_tools::checked_call, wire::time};
use crate::{
    http::{
        extract::{Caller, ExecutionPath, JsonBody, checked_id, whole_number},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::Id,
};

/// Duration of a claim: the default, the minimum and the maximum.
const CLAIM_MS: u32 = 30_000;
const MIN_CLAIM_MS: u32 = 1000;
const MAX_CLAIM_MS: u32 = 600_000;

/// A client's claim of a tool call.
#[derive(Deserialize, ToSchema)]
#[schema(as = ClaimOfClientTool)]
pub(super) struct ClaimBody {
    /// Id chosen by the client for itself, or for its attempt at the call. A repeated claim with the id renews the claim.
    #[schema(value_type = Id)]
    claimant: String,
    /// Duration of the claim in milliseconds. Until the end, every further claimant is refused.
    #[serde(default = "lease_ms", deserialize_with = "whole_number")]
    #[schema(default = 30_000, minimum = 1000, maximum = 600_000)]
    lease_ms: u32,
}

fn lease_ms() -> u32 {
    CLAIM_MS
}

/// A granted claim: the client must run the call.
#[derive(Serialize, ToSchema)]
#[schema(as = ClaimedClientTool)]
pub(super) struct ClaimedBody {
    #[schema(value_type = Id)]
    execution_id: String,
    #[schema(value_type = Id)]
    claimant: String,
    /// End of the claim. Until the end, every further claimant is refused.
    expires_at: String,
    /// True when an earlier client's claim ended without a result. The tool may already have had its effect.
    is_repeated: bool,
}

problems!(Refusals: InvalidBody, InvalidId, ConversationNotFound, ExecutionNotFound, ClientToolClaimed,
    ClientToolAnswered, ClientToolExpired, BodyTooLarge);

/// Claims a call that waits for a client.
///
/// Only one of several clients gets the claim and runs the call. Repeating the request with an unchanged `claimant` is
/// safe and renews the claim.
#[utoipa::path(
    post, path = "/conversations/{id}/client-tools/{execution_id}/claim", tag = "tools", operation_id = "claim_client_tool",
    params(ExecutionPath), request_body = ClaimBody,
    responses((status = 200, body = ClaimedBody, description = "Claimed: run the call, and post the result"), Refusals)
)]
pub(super) async fn claim(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    JsonBody(body): JsonBody<ClaimBody>,
) -> Result<Json<ClaimedBody>, Problem> {
    let claimant = checked_id("claimant", body.claimant)?;
    if !(MIN_CLAIM_MS..=MAX_CLAIM_MS).contains(&body.lease_ms) {
        let detail = format!("`lease_ms` must be {MIN_CLAIM_MS} to {MAX_CLAIM_MS}.");
        return Err(Problem::new(Code::InvalidBody, detail));
    }
    let (conversation, call) = checked_call(&state, &caller, &path).await?;
    let now = Utc::now();
    let until = now + TimeDelta::milliseconds(i64::from(body.lease_ms));
    let outside = &state.ports.outside;
    let execution_id = path.execution_id;
    let claim = if call.is_expired {
        None
    } else {
        let access = &caller.access;
        let claim =
            outside.claim_client_tool(access, &conversation.id, &execution_id, &claimant, until);
        claim.await?
    };
    match claim {
        Some(ClientToolClaim::Run { is_repeated }) => Ok(Json(ClaimedBody {
            execution_id,
            claimant,
            expires_at: time(until),
            is_repeated,
        })),
        Some(ClientToolClaim::Held { until }) => Err(held(until, now)),
        None => Err(nothing_to_run(&call)),
    }
}

fn held(until: DateTime<Utc>, now: DateTime<Utc>) -> Problem {
    let seconds = u32::try_from((until - now).num_seconds()).unwrap_or_default() + 1;
    let detail = "The claimant runs the call now. If the claimant does not renew the claim, the call can be claimed again.";
    Problem::new(Code::ClientToolClaimed, detail).retry_after_s(seconds)
}

fn nothing_to_run(call: &OutsideTool) -> Problem {
    if call.is_expired {
        let detail = "No result came in time, and the model was told. The model may ask again.";
        return Problem::new(Code::ClientToolExpired, detail);
    }
    let detail = "The call has a result, or the turn has ended. Do not run the call.";
    Problem::new(Code::ClientToolAnswered, detail)
}
