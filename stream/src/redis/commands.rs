//! Runs scripts on Redis, each within a time limit.
//!
//! The scripts share a multiplexed connection. The connection is made at first use and dropped after any failure. While Redis
//! is away, calls fail at once, except for one call after each pause ([`Outage`]). Therefore only one call waits for
//! a time-out, not every delta.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{AsyncConnectionConfig, FromRedisValue, ScriptInvocation, aio::MultiplexedConnection};
use tokio::time::timeout;

use super::{address::Address, error::Error, outage::Outage};

/// The connection for scripts; subscriptions have their own.
#[derive(Debug)]
pub(super) struct Commands {
    address: Address,
    timeout: Duration,
    outage: Arc<Outage>,
    state: Mutex<State>,
    /// Held while connecting, because one connection is enough.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections made and dropped, so that a late failure of an old connection does not drop the new one.
    epoch: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("State")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Commands {
    pub(super) fn new(address: Address, timeout: Duration, outage: Arc<Outage>) -> Self {
        Self {
            address,
            timeout,
            outage,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// Runs a script with EVALSHA. After a restart of Redis, SCRIPT LOAD runs once before.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        self.outage.admit()?;
        let admitted = self.lock().epoch;
        let mut epoch = admitted;
        let attempt = async {
            let mut connection;
            (epoch, connection) = self.connection(admitted).await?;
            Ok(script.invoke_async(&mut connection).await?)
        };
        let tried = timeout(self.timeout, attempt)
            .await
            .unwrap_or(Err(Error::Timeout(self.timeout)));
        match &tried {
            Ok(_) => self.outage.succeeded(),
            Err(error) => self.give_up(epoch, error),
        }
        tried
    }

    /// Drops the connection after any failure. After a time-out its state is unknown, and a server that refuses to
    /// write may have become a replica.
    fn give_up(&self, epoch: u64, error: &Error) {
        let mut state = self.lock();
        // Otherwise an earlier call has dropped the connection: one failure counts once, however many calls were in
        // flight.
        if epoch == state.epoch {
            state.connection = None;
            state.epoch += 1;
            self.outage.failed(error);
        }
    }

    /// Returns the connection, and makes a missing one. A call admitted in an earlier epoch does not connect, because
    /// another call has failed since: thousands of waiting calls make one try.
    async fn connection(&self, admitted: u64) -> Result<(u64, MultiplexedConnection), Error> {
        if let Some(connection) = self.lock().current() {
            return Ok(connection);
        }
        let _connecting = self.connecting.lock().await;
        {
            let state = self.lock();
            if let Some(connection) = state.current() {
                return Ok(connection);
            }
            if state.epoch != admitted {
                return Err(Error::Lost);
            }
        }
        // A time-out covers the whole call, so redis-rs's own time-outs are off.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connecting = async {
            let client = self.address.client()?;
            let connecting = client.get_multiplexed_async_connection_with_config(&config);
            connecting.await.map_err(Error::from)
        };
        let connection = connecting.await.inspect_err(|error| {
            // The next call waits for the lock and reads the epoch afterwards.
            self.give_up(admitted, error);
        })?;
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
}
