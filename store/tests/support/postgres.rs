//! A PostgreSQL server for one test binary, and a database of its own for each test.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use everturn_store::PostgresStore;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::sync::OnceCell;

/// Stops the server when standard input closes, which it does however this process ends, and removes its folder.
const LEASH: &str = r#"
folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
server=$!
cat >/dev/null
kill -QUIT $server
wait $server
rm -rf "$folder"
"#;

/// Where Debian and others put the server's programs.
const FOLDERS: [&str; 4] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/local/bin",
];

/// Nothing here has to survive a crash of the machine.
const SETTINGS: [&str; 5] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=300",
    "shared_buffers=256MB",
];

/// User and group `nobody`: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

const START_TIMEOUT: Duration = Duration::from_secs(30);

struct Server {
    port: u16,
    folder: PathBuf,
    _leash: ChildStdin,
}

/// A database that has the tables of this version.
pub struct Database {
    pub url: String,
}

impl Database {
    pub async fn migrated() -> Self {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let template = TEMPLATE
            .get_or_init(|| async {
                let name = "everturn_template".to_owned();
                server().create(&name, "template0").await;
                PostgresStore::migrate(&server().url(&name)).await.unwrap();
                name
            })
            .await;
        Self::copy_of(template).await
    }

    /// Without tables.
    pub async fn empty() -> Self {
        Self::copy_of("template0").await
    }

    async fn copy_of(template: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        server().create(&name, template).await;
        Self {
            url: server().url(&name),
        }
    }

    /// The same database over another port of this machine.
    pub fn url_at(&self, port: u16) -> String {
        self.url
            .replace(&format!(":{}/", server().port), &format!(":{port}/"))
    }

    /// The server's.
    pub fn port() -> u16 {
        server().port
    }

    /// The same database as another role.
    pub fn url_as(&self, role: &str) -> String {
        self.url
            .replace("postgres://everturn@", &format!("postgres://{role}@"))
    }

    pub async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// The tables as `pg_dump` writes them, without what changes from run to run.
    pub fn schema(&self) -> String {
        let dump = Command::new(binary("pg_dump"))
            .args([
                "--schema-only",
                "--no-owner",
                "--no-privileges",
                "--exclude-table=_sqlx_migrations",
                &self.url,
            ])
            .output()
            .unwrap();
        assert!(
            dump.status.success(),
            "{}",
            String::from_utf8_lossy(&dump.stderr)
        );
        let text = String::from_utf8(dump.stdout).unwrap();
        let kept = text.lines().filter(|line| {
            let is_setting = line.starts_with("SET ")
                || line.starts_with("SELECT pg_catalog.")
                || line.starts_with('\\');
            !(line.is_empty() || line.starts_with("--") || is_setting)
        });
        kept.fold(String::new(), |schema, line| schema + line + "\n")
    }
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("everturn-postgres-")
            .tempdir()
            .unwrap()
            .keep();
        if is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = folder.join("data");
        let made = unprivileged("initdb")
            .args([
                "--username=everturn",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );

        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let server = unprivileged("postgres");
        let mut command = Command::new("sh");
        command
            .args(["-c", LEASH, "sh"])
            .arg(&folder)
            .arg(server.get_program())
            .args(server.get_args());
        command.arg("-D").arg(&data).arg("-k").arg(&folder).args([
            "-h",
            "127.0.0.1",
            "-p",
            &port.to_string(),
        ]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let mut shell = command
            .stdin(Stdio::piped())
            .current_dir(&folder)
            .spawn()
            .unwrap();
        let leash = shell.stdin.take().unwrap();
        wait_until_ready(port, &folder, &mut shell);
        Self {
            port,
            folder,
            _leash: leash,
        }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://everturn@127.0.0.1:{}/{database}", self.port)
    }

    async fn create(&self, name: &str, template: &str) {
        // Over the socket, so that both ways in are used.
        let url = format!(
            "postgres://everturn@localhost:{}/postgres?host={}",
            self.port,
            self.folder.display()
        );
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let text = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
        sqlx::query(text).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

fn wait_until_ready(port: u16, folder: &Path, shell: &mut Child) {
    let started = Instant::now();
    let is_ready = || {
        let asked = Command::new(binary("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
            .status();
        asked.is_ok_and(|status| status.success())
    };
    while !is_ready() {
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(
            shell.try_wait().unwrap().is_none(),
            "PostgreSQL ended: {}",
            log()
        );
        assert!(
            started.elapsed() < START_TIMEOUT,
            "PostgreSQL does not start: {}",
            log()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn binary(name: &str) -> PathBuf {
    let found = FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("PostgreSQL's `{name}` is not installed: run `make deps` (package postgresql)")
    })
}

/// A program of the server, as a user that it accepts.
fn unprivileged(name: &str) -> Command {
    if !is_root() {
        return Command::new(binary(name));
    }
    let mut command = Command::new("setpriv");
    command.args([
        format!("--reuid={NOBODY}"),
        format!("--regid={NOBODY}"),
        "--clear-groups".into(),
    ]);
    command.arg(binary(name));
    command
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// Compares with a file of the repository; with EVERTURN_UPDATE_SCHEMA=1 writes it instead.
pub fn assert_is_file(text: &str, path: &Path) {
    if std::env::var_os("EVERTURN_UPDATE_SCHEMA").is_some() {
        fs::File::create(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(
        text == expected,
        "{} is out of date: run the test with EVERTURN_UPDATE_SCHEMA=1",
        path.display()
    );
}
