//! Runs the SDK's workers of one process, one after another.
//!
//! The SDK keeps some memory for every activity as long as its worker lives (docs/libraries.md, Temporal SDK: no
//! activity is forgotten). Therefore a fresh worker replaces the old one after a number of activities. The old worker
//! takes no more tasks, and ends with its last activity.
//!
//! Must not be here: the tasks and options of a worker (`worker.rs`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use futures::{StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use temporalio_sdk::{
    Worker, WorkerRunError, WorkerValidationError,
    interceptors::{ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::connections::is_away;

/// The most workers that wait for their last activities. At the limit, no worker is replaced. Otherwise tools that run
/// for days would keep more and more workers, each with the SDK's memory of its activities.
const MAX_ENDING: usize = 16;

/// The pause before the next attempt, when a fresh worker could not begin because Temporal is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts the activities of one worker of the SDK.
#[derive(Clone)]
pub(super) struct ActivityCount {
    shared: Arc<Shared>,
}

struct Shared {
    count: AtomicUsize,
    limit: usize,
    is_reached: Notify,
}

impl ActivityCount {
    fn new(limit: usize) -> Self {
        let shared = Shared {
            count: AtomicUsize::new(0),
            limit,
            is_reached: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn has_begun(&self) -> bool {
        self.shared.count.load(Ordering::Relaxed) > 0
    }

    /// Waits until the limit is reached.
    async fn reached(&self) {
        self.shared.is_reached.notified().await;
    }
}

impl ActivityInboundInterceptor for ActivityCount {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        if self.shared.count.fetch_add(1, Ordering::Relaxed) + 1 == self.shared.limit {
            // `notify_one` stores the notification until `reached` is called.
            self.shared.is_reached.notify_one();
        }
        next.run(input)
    }
}

/// True when a worker could not begin because Temporal is away. The worker has run no activity.
fn is_engine_away(error: &WorkerRunError) -> bool {
    match error {
        WorkerRunError::Validation(WorkerValidationError::NamespaceDescribeError {
            source,
            ..
        }) => is_away(source),
        _ => false,
    }
}

/// The worker that takes tasks.
struct Current {
    number: usize,
    count: ActivityCount,
    stop: Box<dyn Fn()>,
}

impl Current {
    /// True when the worker failed because Temporal is away. A replacement worker that has run no activity fails for
    /// no other reason.
    fn could_not_begin(&self, error: &WorkerRunError) -> bool {
        let is_untried = self.number > 0 && !self.count.has_begun();
        is_untried || is_engine_away(error)
    }
}

type Ended = (usize, Result<(), WorkerRunError>);

/// Runs the workers of `make` one after another, until `stop` is cancelled and the last worker has ended. A worker is
/// replaced after `renew_after` activities.
///
/// # Errors
///
/// Returns an error if Temporal refuses the first worker, or if the current worker ends without a stop. While Temporal
/// is away, the function waits.
pub(super) async fn run(
    make: impl Fn(ActivityCount) -> anyhow::Result<Worker>,
    renew_after: usize,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut running: FuturesUnordered<LocalBoxFuture<'_, Ended>> = FuturesUnordered::new();
    let begin = |number, pause, running: &FuturesUnordered<LocalBoxFuture<'_, Ended>>| {
        let count = ActivityCount::new(renew_after);
        let mut worker = make(count.clone())?;
        let stop = Box::new(worker.shutdown_handle());
        running.push(Box::pin(async move {
            tokio::time::sleep(pause).await;
            (number, worker.run().await)
        }));
        let current = Current {
            number,
            count,
            stop,
        };
        anyhow::Ok(current)
    };
    let mut current = begin(0, Duration::ZERO, &running)?;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = current.count.reached(), if running.len() <= MAX_ENDING => {
                (current.stop)();
                current = begin(current.number + 1, Duration::ZERO, &running)?;
                tracing::info!(workers = current.number, "a fresh worker of the SDK takes over");
            }
            Some((number, ended)) = running.next() => match ended {
                Err(error) if number != current.number => {
                    tracing::warn!(%error, "a replaced worker of the SDK did not end well");
                }
                Ok(()) if number != current.number => {}
                Err(error) if current.could_not_begin(&error) => {
                    tracing::warn!(%error, "a fresh worker of the SDK could not begin; trying again");
                    // The SDK accepts no second worker for a queue while the failed worker is still registered.
                    (current.stop)();
                    current = begin(number + 1, PAUSE, &running)?;
                }
                ended => {
                    ended.context("the worker ended")?;
                    anyhow::bail!("the worker ended without a request to stop");
                }
            },
        }
    }
    tracing::info!(
        "stopping: running work may end within the grace period, and waiting work moves to other workers"
    );
    (current.stop)();
    while let Some((number, ended)) = running.next().await {
        match ended {
            Err(error) if number == current.number && !current.could_not_begin(&error) => {
                return Err(error).context("the worker ended");
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;

    use everturn_workflows::AgentExecution;
    use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, RetryOptions};
    use temporalio_sdk::{Runtime, WorkerOptions, runtime::RuntimeOptions};
    use tokio::net::TcpListener;

    use super::*;

    /// A connection to an engine that goes away as soon as it is connected to.
    async fn engine_that_goes_away() -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut options = ConnectionOptions::new(address.parse::<url::Url>().unwrap())
            .retry_options(RetryOptions::no_retries())
            .build();
        options.set_skip_get_system_info(true);
        let connection = Connection::connect(options).await.unwrap();
        Client::new(connection, ClientOptions::new("default").build()).unwrap()
    }

    /// The window is small: the worker has connected, and has not begun to poll.
    #[tokio::test(start_paused = true)]
    async fn the_first_worker_waits_for_an_engine_that_is_away() {
        const TRIES: usize = 3;
        let runtime = Runtime::from_current_tokio(RuntimeOptions::default()).unwrap();
        let client = engine_that_goes_away().await;
        let (tries, stop) = (Cell::new(0), CancellationToken::new());
        let make = |count| {
            tries.set(tries.get() + 1);
            if tries.get() == TRIES {
                stop.cancel();
            }
            let options = WorkerOptions::new("queue".to_owned())
                .register_workflow::<AgentExecution>()?
                .activity_inbound_interceptor(count)
                .build();
            Ok(Worker::new(&runtime, client.clone(), options)?)
        };
        run(make, 100, stop.clone()).await.unwrap();
        assert_eq!(tries.get(), TRIES);
    }
}
