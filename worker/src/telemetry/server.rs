//! Serves health and metrics on a thread of its own, which answers even when the process's runtime is stuck.

use std::{net::TcpListener, sync::Arc, thread, time::Duration};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    exporter::Exporter,
    health::{Answer, Health},
};

/// The content type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The interval between two aggregations of the histograms.
const TIDY_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Served {
    health: Arc<Health>,
    exporter: Arc<Exporter>,
}

/// Serves until the process ends.
pub(super) fn serve(
    listener: TcpListener,
    health: Arc<Health>,
    exporter: Arc<Exporter>,
) -> anyhow::Result<()> {
    let beating = Arc::clone(&health);
    health.runtime().spawn(async move { beating.beat().await });
    let served = Served { health, exporter };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot make the runtime of health and metrics")?;
    let run = move || {
        if let Err(error) = runtime.block_on(answer(listener, served)) {
            tracing::error!(%error, "health and metrics are no longer served");
        }
    };
    thread::Builder::new()
        .name("telemetry".to_owned())
        .spawn(run)
        .context("cannot start the thread of health and metrics")?;
    Ok(())
}

async fn answer(listener: TcpListener, served: Served) -> std::io::Result<()> {
    let exporter = Arc::clone(&served.exporter);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(TIDY_EVERY).await;
            exporter.tidy();
        }
    });
    let router = Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/startupz", get(started))
        .route("/metrics", get(metrics))
        .with_state(served);
    let listener = tokio::net::TcpListener::from_std(listener)?;
    axum::serve(listener, router).await
}

async fn live(State(served): State<Served>) -> Response {
    told(served.health.live())
}

async fn ready(State(served): State<Served>) -> Response {
    told(served.health.ready().await)
}

async fn started(State(served): State<Served>) -> Response {
    told(served.health.started())
}

async fn metrics(State(served): State<Served>) -> Response {
    ([(CONTENT_TYPE, PROMETHEUS)], served.exporter.text()).into_response()
}

fn told(answer: Answer) -> Response {
    let status = if answer.is_ok() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(answer)).into_response()
}
