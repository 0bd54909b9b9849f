//! Writes the left-out tools of this worker to the store. Gateways show the tools.

use std::{sync::Arc, time::Duration};

use everturn_activities::LeftOutTools;
use everturn_store::{LeftOut, WorkerId};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The pause between two looks at the tools. People look at the tools of an agent some seconds after a change.
const PAUSE: Duration = Duration::from_secs(2);
/// The number of looks after which unchanged tools are told again, because the lease with the tools may have been removed
/// and begun anew.
const LOOKS_UNTIL_REPEATED: u32 = 60;

/// Returns the empty list of a worker's left-out tools. A task tells the store every change until `shutdown`.
pub(super) fn told(
    store: Arc<dyn LeftOut>,
    worker: &WorkerId,
    shutdown: &CancellationToken,
) -> LeftOutTools {
    let left_out = LeftOutTools::default();
    let telling = tell(store, worker.clone(), left_out.clone());
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        let _ended: Option<()> = shutdown.run_until_cancelled(telling).await;
    });
    left_out
}

/// Tells the tools after each change, forever.
async fn tell(store: Arc<dyn LeftOut>, worker: WorkerId, left_out: LeftOutTools) {
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut told, mut looks) = (Vec::new(), 0);
    loop {
        ticks.tick().await;
        let tools = left_out.now();
        looks += 1;
        if tools == told && (tools.is_empty() || looks < LOOKS_UNTIL_REPEATED) {
            continue;
        }
        match store.tell_left_out(&worker, &tools).await {
            Ok(()) => (told, looks) = (tools, 0),
            // Components with a need for the database report an outage.
            Err(error) => tracing::debug!(%error, "the left-out tools could not be told"),
        }
    }
}
