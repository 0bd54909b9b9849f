//! A Redis of its own: the real server from Debian's package, to work with and to break. It keeps nothing on disk, so
//! it is empty after each start.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, ensure};
use everturn_supervisor::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinHandle,
};

use crate::{
    account::{self, Account},
    ports::free_port,
    server::{Server, ServerLocation, ServerSpec},
};

/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// Script that gives all keys with their values, as printable text.
const DUMP: &str = "local out = {} \
    local function add(it) \
        if type(it) == 'table' then for _, one in ipairs(it) do add(one) end \
        else out[#out + 1] = (tostring(it):gsub('[^%w%p ]', '.')) end \
    end \
    local read = { \
        string = {'GET'}, hash = {'HGETALL'}, set = {'SMEMBERS'}, list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1}, \
        stream = {'XRANGE', '-', '+'} \
    } \
    for _, key in ipairs(redis.call('KEYS', '*')) do \
        local command = read[redis.call('TYPE', key).ok] \
        add(key) \
        add(redis.call(command[1], key, unpack(command, 2))) \
    end \
    return table.concat(out, ' ')";

/// Where Debian's package puts it.
const PROGRAM: &str = "/usr/bin/redis-server";

/// A running server.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    port: u16,
}

impl Redis {
    /// Starts one on a free port; panics when it cannot.
    pub async fn start() -> Self {
        Self::start_at(ServerLocation::Scratch).await.unwrap()
    }

    /// Starts one, and waits until it answers.
    pub async fn start_at(location: ServerLocation) -> anyhow::Result<Self> {
        ensure!(
            Path::new(PROGRAM).is_file(),
            "{PROGRAM} is missing: run `make deps` in the project"
        );
        let account = Account::unprivileged()?;
        let (directory, port, is_scratch) = match location {
            ServerLocation::Scratch | ServerLocation::Measured => {
                (account::scratch("redis", account)?, free_port(), true)
            }
            ServerLocation::Lasting { directory, port } => {
                account::lasting(&directory, account)?;
                (directory, port, false)
            }
        };
        let port_text = port.to_string();
        let args = [
            "--bind",
            "127.0.0.1",
            "--port",
            &port_text,
            "--save",
            "",
            "--appendonly",
            "no",
            // Tests look at what it keeps.
            "--enable-debug-command",
            "local",
        ];
        let server = Server::new(ServerSpec {
            name: "Redis",
            program: PROGRAM.into(),
            args: args.map(str::to_owned).to_vec(),
            stop: Signal::SIGTERM,
            directory,
            is_scratch,
            account,
        })?;
        server.start().await?;
        let redis = Self { server, port };
        redis.answers().await?;
        Ok(redis)
    }

    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Runs a command on a connection of its own, and returns its reply: the text of a longer one, else its first line.
    /// An error that Redis answers is one here.
    pub async fn command(&self, command: &str) -> anyhow::Result<String> {
        let reply = tokio::time::timeout(COMMAND_TIMEOUT, self.ask(command)).await;
        reply
            .context("Redis does not answer")?
            .with_context(|| format!("{command} failed"))
    }

    async fn ask(&self, command: &str) -> anyhow::Result<String> {
        let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await?);
        connection
            .write_all(format!("{command}\r\n").as_bytes())
            .await?;
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        let line = line.trim_end();
        ensure!(!line.is_empty() && !line.starts_with('-'), "{line}");
        let Some(length) = line.strip_prefix('$') else {
            return Ok(line.to_owned());
        };
        let mut text = vec![0; length.parse().context("there is no such value")?];
        connection.read_exact(&mut text).await?;
        Ok(String::from_utf8(text)?)
    }

    /// A number from INFO.
    pub async fn info(&self, name: &str) -> u64 {
        let info = self.command("INFO everything").await.unwrap();
        let value = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or_else(|| panic!("INFO has no number {name}"))
    }

    /// How many keys it holds, without those that have expired.
    pub async fn keys(&self) -> u64 {
        let size = self.command("DBSIZE").await.unwrap();
        size.trim_start_matches(':').parse().unwrap()
    }

    /// Returns all keys with their values, as text. What is not printable is a dot.
    pub async fn dump(&self) -> anyhow::Result<String> {
        self.command(&format!("EVAL \"{DUMP}\" 0")).await
    }

    /// Writes down all commands that it is given from now on.
    pub async fn watch(&self) -> anyhow::Result<Watch> {
        let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await?);
        connection.write_all(b"MONITOR\r\n").await?;
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        ensure!(line == "+OK\r\n", "{line}");
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let noted = Arc::clone(&seen);
        let reading = tokio::spawn(async move {
            let mut line = Vec::new();
            while let Ok(1..) = connection.read_until(b'\n', &mut line).await {
                noted.lock().unwrap().append(&mut line);
            }
        });
        Ok(Watch { seen, reading })
    }

    /// kill -9.
    pub async fn kill(&self) {
        self.server.end(Signal::SIGKILL).await.unwrap();
    }

    /// Starts it again after [`Redis::kill`]: on the same port, empty.
    pub async fn start_again(&self) {
        self.server.start().await.unwrap();
        self.answers().await.unwrap();
    }

    /// Removes everything from it.
    pub async fn flush(&self) {
        self.command("FLUSHALL").await.unwrap();
    }

    /// Returns at once; for this long, no client gets an answer.
    pub async fn slow(&self, duration: Duration) {
        self.command(&format!("CLIENT PAUSE {} ALL", duration.as_millis()))
            .await
            .unwrap();
    }

    /// Stops it from doing anything, with its connections open, until [`Redis::resume`].
    pub async fn pause(&self) {
        self.server.pause().await.unwrap();
    }

    /// Goes on after [`Redis::pause`].
    pub async fn resume(&self) {
        self.server.resume().await.unwrap();
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

    async fn answers(&self) -> anyhow::Result<()> {
        self.server
            .answers(|| async {
                let reply = self.command("PING").await?;
                ensure!(reply == "+PONG", "it answers {reply}");
                Ok(())
            })
            .await
    }
}

/// Writes down what a Redis is told, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    seen: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
}

impl Watch {
    /// The commands with their arguments, in which what is not printable is escaped.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
