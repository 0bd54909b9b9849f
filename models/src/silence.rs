//! The limit for the silence of a provider.

use std::{future::Future, time::Duration};

use crate::error::ModelError;

/// Waits for the next bytes of a provider, for `silence` at the most.
pub(crate) async fn within<T>(
    silence: Option<Duration>,
    bytes: impl Future<Output = T>,
) -> Result<T, ModelError> {
    match silence {
        None => Ok(bytes.await),
        Some(limit) => tokio::time::timeout(limit, bytes)
            .await
            .map_err(|_| ModelError::silent(limit)),
    }
}
