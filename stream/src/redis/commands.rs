//! Runs scripts, each in limited time, whatever Redis does.
//!
//! There is one multiplexed connection, made when it is first needed. After a failure, calls fail at once until a pause
//! is over. Then one call tries again, while the others still fail at once. So when Redis is away, only one call every
//! `max_backoff` waits for a time-out, and not every delta.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, ScriptInvocation, aio::MultiplexedConnection,
};
use tokio::time::{Instant, timeout};

use super::{
    error::Error,
    options::{RedisStreamOptions, backoff},
};

/// The connection for everything but subscriptions.
#[derive(Debug)]
pub(super) struct Commands {
    client: Client,
    timeout: Duration,
    max_backoff: Duration,
    state: Mutex<State>,
    /// Held while connecting: one connection is enough.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections made and given up, so that a late failure of an old one does not take the new one away.
    epoch: u64,
    failures: u32,
    /// Calls fail until then.
    retry_at: Option<Instant>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("State")
            .field("epoch", &self.epoch)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

impl Commands {
    pub(super) fn new(client: Client, options: &RedisStreamOptions) -> Self {
        Self {
            client,
            timeout: options.command_timeout,
            max_backoff: options.max_backoff,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// Runs a script: EVALSHA, and once after Redis was restarted SCRIPT LOAD before it.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let mut epoch = self.admit()?;
        let attempt = async {
            let mut connection;
            (epoch, connection) = self.connection().await?;
            Ok(script.invoke_async(&mut connection).await?)
        };
        let tried = timeout(self.timeout, attempt)
            .await
            .unwrap_or(Err(Error::Timeout(self.timeout)));
        let mut state = self.lock();
        match &tried {
            Ok(_) => state.succeed(),
            Err(error) if epoch == state.epoch => state.fail(self.max_backoff, error),
            // The connection was given up already: one failure counts once, however many calls were in flight.
            Err(_) => {}
        }
        tried
    }

    /// Fails while Redis is known to be away.
    fn admit(&self) -> Result<u64, Error> {
        let mut state = self.lock();
        let now = Instant::now();
        match state.retry_at {
            Some(at) if now < at => Err(Error::Away(at - now)),
            Some(_) => {
                // This call tries. Until it has an outcome, the others fail.
                state.retry_at = Some(now + self.max_backoff.max(self.timeout));
                Ok(state.epoch)
            }
            None => Ok(state.epoch),
        }
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection), Error> {
        if let Some(connection) = self.lock().current() {
            return Ok(connection);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(connection) = self.lock().current() {
            return Ok(connection);
        }
        // The whole call has a time-out; redis-rs's own would be a second one inside it.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let mut state = self.lock();
        state.epoch += 1;
        state.connection = Some(connection.clone());
        Ok((state.epoch, connection))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn current(&self) -> Option<(u64, MultiplexedConnection)> {
        self.connection
            .clone()
            .map(|connection| (self.epoch, connection))
    }

    fn succeed(&mut self) {
        if self.failures > 0 {
            tracing::info!("Redis is back; texts are shown live again");
        }
        self.failures = 0;
        self.retry_at = None;
    }

    /// Gives the connection up after any failure. After a time-out it is not known what is wrong with it, and a server
    /// that refuses to write may have become a replica.
    fn fail(&mut self, max_backoff: Duration, error: &Error) {
        if self.failures == 0 {
            tracing::warn!(%error, "Redis is away; texts are not shown live");
        }
        self.connection = None;
        self.epoch += 1;
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(Instant::now() + backoff(self.failures, max_backoff));
    }
}
