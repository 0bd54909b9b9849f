//! Alerts on processes that are gone, and on a Temporal that is.

use everturn_tests::model::{Model, Reply};

use super::watched::Watched;

async fn with_workers(workers: usize) -> Watched {
    let model = Model::start(|_| Reply::text("Hello.")).await;
    Watched::of(model, "", workers).await
}

#[tokio::test]
async fn a_process_is_down() {
    let mut watched = with_workers(2).await;
    watched.is_well().await;
    watched.kill("worker-2").await;
    watched.minutes(7).await;
    let fires = watched.only_fires(&["EverturnProcessDown"]).await;
    fires[0].has("pod", "worker-2");
}

#[tokio::test]
async fn workers_die_again_and_again() {
    let mut watched = with_workers(2).await;
    watched.is_well().await;
    for lost in [1.0, 2.0, 3.0] {
        watched.kill("worker-2").await;
        watched.start_again("worker-2").await;
        watched
            .counted(&["everturn_lost_workers_total"], lost)
            .await;
        watched.minutes(6).await;
    }
    watched.only_fires(&["EverturnWorkersLost"]).await;
}

#[tokio::test]
async fn no_worker_gets_tasks() {
    let mut watched = with_workers(1).await;
    watched.is_well().await;
    watched.stack.temporal.stop().await;
    watched.is_polled = false;
    watched.minutes(8).await;
    watched.only_fires(&["EverturnNoWorkerPolls"]).await;

    // Temporal comes back, and then no worker is left.
    watched.stack.temporal.start_empty().await;
    watched.is_polled = true;
    watched.is_well().await;
    watched.is_polled = false;
    watched.remove("worker-1").await;
    watched.minutes(8).await;
    watched.only_fires(&["EverturnNoWorkerPolls"]).await;
}
