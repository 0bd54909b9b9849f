//! A PgBouncer of its own in front of a PostgreSQL of this machine: the real one from Debian's package.

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use everturn_supervisor::Signal;
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};

use crate::{
    account::{self, Account},
    ports::free_port,
    postgres::USER,
    server::{Server, ServerSpec},
};

/// Where Debian's package puts it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running PgBouncer.
#[derive(Debug)]
pub struct PgBouncer {
    // It runs as long as this lives.
    _server: Server,
    port: u16,
}

impl PgBouncer {
    /// Starts one on a free port, in front of the PostgreSQL on `postgres_port`; panics when it cannot. `settings` are
    /// lines of its configuration, like `pool_mode = session`. All clients become [`USER`].
    pub async fn start(postgres_port: u16, settings: &[&str]) -> Self {
        Self::try_start(postgres_port, settings).await.unwrap()
    }

    async fn try_start(postgres_port: u16, settings: &[&str]) -> anyhow::Result<Self> {
        ensure!(
            Path::new(PROGRAM).is_file(),
            "{PROGRAM} is missing: run `make deps` in the project"
        );
        let account = Account::unprivileged()?;
        let (directory, port) = (account::scratch("pgbouncer", account)?, free_port());
        let file = directory.join("pgbouncer.ini");
        let settings = settings.join("\n");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={postgres_port} user={USER}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n{settings}\n"
        );
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        let server = Server::new(ServerSpec {
            name: "PgBouncer",
            program: PROGRAM.into(),
            args: vec![file.display().to_string()],
            // At once: SIGINT would wait for its clients.
            stop: Signal::SIGTERM,
            directory,
            is_scratch: true,
            account,
        })?;
        server.start().await?;
        server.answers(|| answers(port)).await?;
        Ok(Self {
            _server: server,
            port,
        })
    }

    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

async fn answers(port: u16) -> anyhow::Result<()> {
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(port)
        .username(USER)
        .database("postgres")
        .extra_float_digits(None);
    let mut connection = PgConnection::connect_with(&options).await?;
    sqlx::raw_sql("SELECT 1").execute(&mut connection).await?;
    Ok(connection.close().await?)
}
