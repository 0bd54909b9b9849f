//! Requests that are sent until a gateway responds.

use std::time::Duration;

use everturn_client::ClientError;

/// The pauses between two attempts of a request while the gateway is unreachable.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Sends a request, and retries until a gateway responds. The request must be idempotent.
pub(super) async fn until_reached<T, F>(mut request: impl FnMut() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        match request().await {
            Err(error) if is_away(&error) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            answer => return answer,
        }
    }
}

/// True when no gateway has responded, also according to a proxy.
fn is_away(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused(problem) => matches!(problem.status, 502 | 504),
        ClientError::Url(_) | ClientError::Token | ClientError::Unexpected(_) => false,
    }
}
