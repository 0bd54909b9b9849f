//! Waiting on conditions.

use std::{future::Future, time::Duration};

/// The longest wait. What is waited for takes seconds; a busy machine may take far longer, and only a test that fails
/// anyway waits to the end.
const LIMIT: Duration = Duration::from_mins(5);

/// Waits until `condition` gives something. Panics, naming `what`, when it does not in time.
pub async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut condition: impl FnMut() -> F,
) -> T {
    let waiting = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting)
        .await
        .unwrap_or_else(|_| panic!("waited {LIMIT:?} in vain until {what}"))
}
