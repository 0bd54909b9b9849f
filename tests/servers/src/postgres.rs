//! A PostgreSQL of its own: the real server from Debian's package, to work with and to break.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, ensure};
use everturn_supervisor::Signal;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::sync::OnceCell;

use crate::{
    account::{self, Account},
    ports::free_port,
    server::{Server, ServerLocation, ServerSpec},
    wait,
};

/// Superuser of the server. It trusts whoever reaches it on loopback.
pub const USER: &str = "everturn";

/// Debian's packages keep each version's programs here, off PATH.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// What the project is built for; another one is taken only when this is not there.
const VERSION: u32 = 15;

/// How long one look may take: a paused server accepts connections and says nothing.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    port: u16,
}

static SHARED: OnceCell<Arc<Postgres>> = OnceCell::const_new();

/// The server that all tests of this binary share; each test has a database of its own.
pub async fn shared() -> Arc<Postgres> {
    SHARED
        .get_or_init(|| async { Arc::new(Postgres::start().await) })
        .await
        .clone()
}

impl Postgres {
    /// Starts one in a scratch directory; panics when it cannot.
    pub async fn start() -> Self {
        Self::start_at(ServerLocation::Scratch).await.unwrap()
    }

    /// Starts one, and waits until it answers.
    pub async fn start_at(location: ServerLocation) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let programs = programs()?;
        let is_synced = !matches!(location, ServerLocation::Scratch);
        let (directory, port, is_scratch) = match location {
            ServerLocation::Scratch | ServerLocation::Measured => {
                (account::scratch("postgres", account)?, free_port(), true)
            }
            ServerLocation::Lasting { directory, port } => {
                account::lasting(&directory, account)?;
                (directory, port, false)
            }
        };
        let data = directory.join("data");
        let server = Server::new(ServerSpec {
            name: "PostgreSQL",
            program: programs.join("postgres"),
            args: arguments(&data, port, is_synced),
            // Fast, or at once when nothing is kept: the default, SIGTERM, would wait for clients to leave.
            stop: if is_scratch {
                Signal::SIGQUIT
            } else {
                Signal::SIGINT
            },
            directory,
            is_scratch,
            account,
        })?;
        if !data.join("PG_VERSION").exists() {
            create_cluster(&server, &programs).await?;
        }
        server.start().await?;
        let postgres = Self { server, port };
        postgres.answers().await?;
        Ok(postgres)
    }

    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database.
    pub async fn create_database(&self, name: &str) {
        self.copy_database("template1", name).await;
    }

    /// Creates a database that has what another one has, to which nobody is connected.
    pub async fn copy_database(&self, template: &str, name: &str) {
        let sql = format!("CREATE DATABASE \"{name}\" TEMPLATE \"{template}\"");
        self.execute("postgres", &sql).await.unwrap();
    }

    /// Creates a database, unless it is there.
    pub async fn ensure_database(&self, name: &str) -> anyhow::Result<()> {
        if self.connect(name).await.is_ok() {
            return Ok(());
        }
        self.execute("postgres", &format!("CREATE DATABASE \"{name}\""))
            .await
    }

    /// Runs SQL in a database, on a connection of its own.
    pub async fn execute(&self, database: &str, sql: &str) -> anyhow::Result<()> {
        let mut connection = self.connect(database).await?;
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await?;
        Ok(connection.close().await?)
    }

    /// A connection to a database.
    pub async fn connect(&self, database: &str) -> anyhow::Result<PgConnection> {
        let url = self.url(database);
        let connecting = tokio::time::timeout(PROBE_TIMEOUT, PgConnection::connect(&url));
        connecting
            .await
            .context("PostgreSQL does not answer")?
            .with_context(|| format!("cannot connect to {url}"))
    }

    /// Stops it as an administrator does (running transactions are rolled back), and starts it again.
    pub async fn restart_fast(&self) {
        self.restart(Signal::SIGINT).await;
    }

    /// Ends it at once, as a crash does, and starts it again: it recovers from its log.
    pub async fn restart_immediate(&self) {
        self.restart(Signal::SIGQUIT).await;
    }

    async fn restart(&self, signal: Signal) {
        self.server.end(signal).await.unwrap();
        self.server.start().await.unwrap();
        self.answers().await.unwrap();
    }

    /// Ends it at once, as a crash does.
    pub async fn crash(&self) {
        self.server.end(Signal::SIGQUIT).await.unwrap();
    }

    /// Starts it again, after [`Postgres::crash`]. It may still be at its recovery when it answers.
    pub async fn start_again(&self) {
        self.server.start().await.unwrap();
        self.answers().await.unwrap();
    }

    /// Runs a shell script as an administrator of the server does, whether it runs or not: under its account, with its
    /// programs on PATH, and with `PGDATA` and what its programs need to connect. Returns what the script printed.
    pub async fn administer(&self, script: &str, environment: &[(&str, &str)]) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command
            .args(["-euc", script])
            .env("PATH", format!("{}:{path}", programs().unwrap().display()))
            .env("HOME", self.directory())
            .env("PGDATA", self.directory().join("data"))
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", USER)
            .env("PGDATABASE", "postgres")
            .envs(environment.iter().copied());
        let output = self.server.beside(command).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout);
        assert!(
            output.status.success(),
            "{script}\n{printed}\n{}",
            text(&output.stderr)
        );
        printed
    }

    /// Stops it, copies all of its files, and starts it again.
    pub async fn back_up(&self) {
        self.server.end(Signal::SIGINT).await.unwrap();
        self.copy("data", "backup").await;
        self.server.start().await.unwrap();
        self.answers().await.unwrap();
    }

    /// Ends it at once, and starts it again with the files that were copied: everything that was committed since then
    /// is lost, as after a failover to a server that was behind.
    pub async fn restore(&self) {
        self.server.end(Signal::SIGQUIT).await.unwrap();
        fs::remove_dir_all(self.directory().join("data")).unwrap();
        self.copy("backup", "data").await;
        self.server.start().await.unwrap();
        self.answers().await.unwrap();
    }

    /// Ends it at once, and starts it again as a standby that has read the log up to [`Postgres::back_up`] and pauses
    /// there: it answers, with what was there then.
    pub async fn fall_behind(&self) {
        self.crash().await;
        let script = r#"
            mv "$PGDATA" "$PGDATA.lost"
            cp -a "$HOME/backup" "$PGDATA"
            cp -a "$PGDATA.lost"/pg_wal/0* "$PGDATA/pg_wal/"
            cp "$PGDATA/postgresql.auto.conf" "$HOME/before.conf"
            echo "recovery_target = 'immediate'" >> "$PGDATA/postgresql.auto.conf"
            echo "recovery_target_action = 'pause'" >> "$PGDATA/postgresql.auto.conf"
            touch "$PGDATA/standby.signal""#;
        self.administer(script, &[]).await;
        self.start_again().await;
    }

    /// Reads the rest of the log after [`Postgres::fall_behind`], and becomes the primary with all that was committed.
    pub async fn catch_up(&self) {
        self.crash().await;
        let script = r#"
            cp "$HOME/before.conf" "$PGDATA/postgresql.auto.conf"
            echo "restore_command = 'false'" >> "$PGDATA/postgresql.auto.conf"
            mv "$PGDATA/standby.signal" "$PGDATA/recovery.signal""#;
        self.administer(script, &[]).await;
        self.start_again().await;
        let is_primary = "DO $$ BEGIN ASSERT NOT pg_is_in_recovery(); END $$";
        wait::until("PostgreSQL has recovered", || async {
            self.execute("postgres", is_primary).await.ok()
        })
        .await;
    }

    async fn copy(&self, from: &str, to: &str) {
        let mut command = Command::new("cp");
        let place = |name: &str| self.directory().join(name);
        command.arg("-a").args([place(from), place(to)]);
        let status = self.server.prepare(command).await.unwrap();
        assert!(status.success(), "{status}");
    }

    /// Cuts all connections of clients, as a failover does.
    pub async fn terminate_backends(&self) {
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        self.execute("postgres", others).await.unwrap();
    }

    /// Freezes all of its processes: connections stay open and hang.
    pub async fn pause(&self) {
        self.server.pause().await.unwrap();
        wait::until("PostgreSQL is paused", || async {
            self.is_frozen().then_some(())
        })
        .await;
    }

    /// Goes on after [`Postgres::pause`].
    pub async fn resume(&self) {
        self.server.resume().await.unwrap();
        wait::until("PostgreSQL goes on", || async {
            (!self.is_frozen()).then_some(())
        })
        .await;
        self.answers().await.unwrap();
    }

    /// Stops it and waits until it is gone.
    pub async fn stop(&self) {
        self.server.stop().await;
    }

    /// Waits for it to end by itself, which it should not.
    pub async fn ended(&self) -> anyhow::Error {
        self.server.ended().await
    }

    /// Where it runs, with its log.
    pub fn directory(&self) -> &Path {
        self.server.directory()
    }

    /// Process ids: the postmaster's first, then its children's.
    pub fn processes(&self) -> Vec<u32> {
        let file =
            fs::read_to_string(self.directory().join("data/postmaster.pid")).unwrap_or_default();
        let Some(postmaster) = file.lines().next().and_then(|line| line.parse().ok()) else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"))
            .unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(postmaster).chain(children).collect()
    }

    fn is_frozen(&self) -> bool {
        let is_stopped = |id: &u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // The state follows the name, which may contain anything but ends with the last parenthesis.
            // One that ended meanwhile is a zombie until the postmaster goes on.
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.trim_start().starts_with(['T', 'Z']))
        };
        let processes = self.processes();
        !processes.is_empty() && processes.iter().all(is_stopped)
    }

    async fn answers(&self) -> anyhow::Result<()> {
        self.server
            .answers(|| self.execute("postgres", "SELECT 1"))
            .await
    }
}

fn arguments(data: &Path, port: u16, is_synced: bool) -> Vec<String> {
    let mut args = vec![
        "-D".to_owned(),
        data.display().to_string(),
        "-p".to_owned(),
        port.to_string(),
    ];
    let mut set = |setting: &str| args.extend(["-c".to_owned(), setting.to_owned()]);
    set("listen_addresses=127.0.0.1");
    set("unix_socket_directories=");
    // Temporal takes up to 50, and each worker, gateway and test its own.
    set("max_connections=300");
    if !is_synced {
        // A crash of the server loses nothing by these, only a crash of the machine does.
        set("fsync=off");
        set("full_page_writes=off");
    }
    args
}

/// Creates the files of a cluster, in the process group of the server, so that nothing is left of one that is interrupted.
/// The directory gets its name only when it is complete.
async fn create_cluster(server: &Server, programs: &Path) -> anyhow::Result<()> {
    let directory = server.directory();
    let new = directory.join("new");
    if new.exists() {
        fs::remove_dir_all(&new).with_context(|| format!("cannot remove {}", new.display()))?;
    }
    let mut command = Command::new(programs.join("initdb"));
    command
        .args(["--username", USER, "--auth", "trust", "--encoding", "UTF8"])
        .args(["--locale", "C.UTF-8", "--no-sync", "-D"])
        .arg(&new);
    let status = server.prepare(command).await?;
    ensure!(status.success(), "initdb failed; {}", server.log_end());
    fs::rename(&new, directory.join("data")).context("cannot rename the new cluster")
}

/// One of PostgreSQL's programs, of the server's version.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    Ok(programs()?.join(name))
}

/// The directory of PostgreSQL's programs.
fn programs() -> anyhow::Result<PathBuf> {
    let versions = fs::read_dir(PROGRAMS).into_iter().flatten().flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let programs = |version: u32| Path::new(PROGRAMS).join(version.to_string()).join("bin");
    let there = versions
        .filter(|version| *version >= VERSION && programs(*version).join("postgres").is_file());
    let best = there.max_by_key(|version| (*version == VERSION, *version));
    best.map(programs).with_context(|| {
        format!("PostgreSQL {VERSION} is not under {PROGRAMS}: run `make deps` in the project")
    })
}
