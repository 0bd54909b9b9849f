//! Health checks, for programs that restart gateways and send traffic to gateways.

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::one_of,
};

/// The longest time that a check of the store may take. A gateway whose store is slower should get no traffic.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The gateway is healthy.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub(super) struct HealthBody {
    #[schema(schema_with = statuses)]
    status: &'static str,
}

fn statuses() -> utoipa::openapi::schema::Object {
    one_of(&["ok"])
}

/// Answers 200 while the process runs.
#[utoipa::path(
    get, path = "/livez", tag = "health", security(()), responses((status = 200, body = HealthBody, description = "Alive"))
)]
pub(super) async fn livez() -> Json<HealthBody> {
    Json(HealthBody { status: "ok" })
}

problems!(only NotReady: Internal, StoreUnavailable, ShuttingDown);

/// Answers 200 when the gateway can serve requests.
///
/// Temporal is not checked, because the gateway can still read conversations without Temporal.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, body = HealthBody, description = "Ready"), NotReady)
)]
pub(super) async fn readyz(State(state): State<GatewayState>) -> Result<Json<HealthBody>, Problem> {
    ready(&state).await?;
    Ok(Json(HealthBody { status: "ok" }))
}

/// Checks that the gateway accepts work, that the store responds, and that the disk of an embedded store takes writes.
pub async fn ready(state: &GatewayState) -> Result<(), Problem> {
    if state.shutdown.is_cancelled() {
        return Err(Problem::new(
            Code::ShuttingDown,
            "Another gateway will answer.",
        ));
    }
    match tokio::time::timeout(STORE_TIMEOUT, state.ports.events.check()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Problem::new(
            Code::StoreUnavailable,
            "The store did not answer in time.",
        )),
    }
}
