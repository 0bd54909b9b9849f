//! Options for opening the file.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sqlx::{
    Connection as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{api::Result, error::StoreError};

/// Pause between tries of the first connection. The switch of a new file to WAL fails at once, without the busy
/// time-out, while another process switches. The tries end after the busy time-out.
const OPEN_PAUSE: Duration = Duration::from_millis(50);
/// The write-ahead log shrinks to this size after a long read has kept it growing.
const JOURNAL_SIZE_LIMIT_BYTES: &str = "67108864";

/// How to open the file.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Reading connections, with a thread and a page cache per connection. Reads are short, so 4 keep a small machine's
    /// cores busy. Default 4.
    pub readers: u32,
    /// How long to wait for another process's write transaction, which takes milliseconds. Default 5 s: a save is
    /// retried locally for that long.
    pub busy_timeout: Duration,
    /// How long to wait for a free connection of the process, behind other callers. Default 10 s.
    pub acquire_timeout: Duration,
    /// True: a commit also survives a power cut, at the cost of one fsync per commit. False, the default: a commit
    /// survives kill -9 of the process. A power cut may lose the last commits, but never the file.
    pub survive_power_cut: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            acquire_timeout: Duration::from_secs(10),
            survive_power_cut: false,
        }
    }
}

impl SqliteOptions {
    fn connect(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .foreign_keys(true)
            .busy_timeout(self.busy_timeout)
    }

    fn connect_to_write(&self, path: &Path) -> SqliteConnectOptions {
        let synchronous = if self.survive_power_cut {
            SqliteSynchronous::Full
        } else {
            SqliteSynchronous::Normal
        };
        self.connect()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .pragma("journal_size_limit", JOURNAL_SIZE_LIMIT_BYTES)
    }

    /// Returns a pool whose connections stay open, without a background task (docs/libraries.md, sqlx: the task that
    /// looks after a pool may never end).
    fn pool(&self, connections: u32) -> SqlitePoolOptions {
        SqlitePoolOptions::new()
            .max_connections(connections)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(self.acquire_timeout)
    }

    /// Returns a pool of one writing connection. The pool throws a connection away that stays in a transaction. After a
    /// full disk or an I/O error, SQLite may have rolled the transaction back by itself. The rollback of sqlx then fails,
    /// and sqlx would refuse every later transaction of the connection (docs/libraries.md, sqlx: a failed rollback leaves the
    /// transaction open).
    fn pool_to_write(&self) -> SqlitePoolOptions {
        self.pool(1).after_release(|connection, _| {
            Box::pin(async move {
                if connection.is_in_transaction() {
                    // The connection answers after the rollback that a dropped transaction has asked for.
                    connection.ping().await?;
                }
                Ok(!connection.is_in_transaction())
            })
        })
    }

    /// Returns a second writing connection beside the main writer. The connection opens on first use.
    pub(super) fn second_writer(&self, path: &Path) -> SqlitePool {
        let pool = self.pool_to_write();
        pool.connect_lazy_with(self.connect_to_write(path))
    }

    /// Opens the main writing connection.
    pub(super) async fn writer(&self, path: &Path) -> Result<SqlitePool> {
        let connect = self.connect_to_write(path);
        let pool = self.pool_to_write();
        let started = Instant::now();
        loop {
            let opened = pool.clone().connect_with(connect.clone()).await;
            match opened.map_err(StoreError::from) {
                Err(StoreError::Unavailable(_)) if started.elapsed() < self.busy_timeout => {
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
                opened => return opened,
            }
        }
    }

    /// Returns connections that only read. The connections open on first use.
    pub(super) fn readers(&self, path: &Path) -> SqlitePool {
        let connect = self.connect().filename(path).read_only(true);
        self.pool(self.readers.max(1)).connect_lazy_with(connect)
    }

    /// Opens one connection that holds the whole database, and must stay open while the pool lives. The pool does not test
    /// the connection before a use, because a connection in memory cannot break.
    pub(super) async fn in_memory(&self) -> Result<SqlitePool> {
        let pool = self.pool(1).min_connections(1).test_before_acquire(false);
        Ok(pool.connect_with(self.connect().in_memory(true)).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise sqlx looks after the pool (docs/libraries.md, sqlx: the task that looks after a pool may never end).
    #[test]
    fn nothing_looks_after_a_pool() {
        let options = SqliteOptions::default().pool(1);
        assert_eq!(options.get_max_lifetime(), None);
        assert_eq!(options.get_idle_timeout(), None);
        assert_eq!(options.get_min_connections(), 0);
    }
}
