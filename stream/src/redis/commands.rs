//! Runs scripts, each in limited time, whatever Redis does.
//!
//! There is one multiplexed connection, made when it is first needed and given up after any failure. While Redis is
//! away, calls fail at once, except for one in each pause ([`Outage`]). So only that one waits for a time-out, and not
//! every delta.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{AsyncConnectionConfig, FromRedisValue, ScriptInvocation, aio::MultiplexedConnection};
use tokio::time::timeout;

use super::{address::Address, error::Error, outage::Outage};

/// The connection for everything but subscriptions.
#[derive(Debug)]
pub(super) struct Commands {
    address: Address,
    timeout: Duration,
    outage: Arc<Outage>,
    state: Mutex<State>,
    /// Held while connecting: one connection is enough.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections made and given up, so that a late failure of an old one does not take the new one away.
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

    /// Runs a script: EVALSHA, and once after Redis was restarted SCRIPT LOAD before it.
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

    /// Gives the connection up after any failure. After a time-out it is not known what is wrong with it, and a server
    /// that refuses to write may have become a replica.
    fn give_up(&self, epoch: u64, error: &Error) {
        let mut state = self.lock();
        // If it was given up already: one failure counts once, however many calls were in flight.
        if epoch == state.epoch {
            state.connection = None;
            state.epoch += 1;
            self.outage.failed(error);
        }
    }

    /// The connection, made if there is none. It is not made by a call that was admitted in an earlier epoch, because
    /// another one has failed since: thousands of calls that wait here make one try.
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
        // The whole call has a time-out; redis-rs's own would be a second one inside it.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connecting = async {
            let client = self.address.client()?;
            let connecting = client.get_multiplexed_async_connection_with_config(&config);
            connecting.await.map_err(Error::from)
        };
        let connection = connecting.await.inspect_err(|error| {
            // Before the next call, which waits for the lock, looks at the epoch.
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
