//! A Redis of its own: the real server from Debian's package, to work with and to break. It keeps nothing on disk, so
//! it is empty after each start.

use std::{path::Path, time::Duration};

use anyhow::{Context, ensure};
use everturn_worker::dev::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::{
    account::{self, Account},
    ports::free_port,
    server::{Place, Server, Spec},
};

/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

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
        Self::start_at(Place::Scratch).await.unwrap()
    }

    /// Starts one, and waits until it answers.
    pub async fn start_at(place: Place) -> anyhow::Result<Self> {
        ensure!(
            Path::new(PROGRAM).is_file(),
            "{PROGRAM} is missing: run `make deps` in the project"
        );
        let account = Account::unprivileged()?;
        let (directory, port, is_scratch) = match place {
            Place::Scratch => (account::scratch("redis", account)?, free_port(), true),
            Place::Lasting { directory, port } => {
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
        ];
        let server = Server::start(Spec {
            name: "Redis",
            program: PROGRAM.into(),
            args: args.map(str::to_owned).to_vec(),
            stop: Signal::Terminate,
            directory,
            is_scratch,
            account,
        })?;
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

    /// Runs a command and returns the first line of the reply.
    pub async fn command(&self, command: &str) -> anyhow::Result<String> {
        let run = async {
            let mut connection =
                BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await?);
            connection
                .write_all(format!("{command}\r\n").as_bytes())
                .await?;
            let mut reply = String::new();
            connection.read_line(&mut reply).await?;
            let reply = reply.trim_end();
            ensure!(
                !reply.is_empty() && !reply.starts_with('-'),
                "{command}: {reply}"
            );
            Ok(reply.to_owned())
        };
        tokio::time::timeout(COMMAND_TIMEOUT, run)
            .await
            .context("Redis does not answer")?
    }

    /// kill -9.
    pub async fn kill(&self) {
        self.server.end(Signal::Kill).await.unwrap();
    }

    /// Starts it again after [`Redis::kill`]: on the same port, empty.
    pub async fn start_again(&self) {
        self.server.start_again().await.unwrap();
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
