//! A store that speaks S3: versitygw on a directory, to work with and to break.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, ensure};
use everturn_supervisor::Signal;
use tokio::net::TcpStream;

use crate::{
    account::{self, Account},
    ports::free_port,
    server::{Server, ServerSpec},
    temporal_cli::tool,
};

/// How long it may take to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server with one bucket.
#[derive(Debug)]
pub struct S3 {
    server: Server,
    port: u16,
    bucket: PathBuf,
}

impl S3 {
    /// The bucket.
    pub const BUCKET: &'static str = "files";
    /// The id of the key.
    pub const KEY_ID: &'static str = "test-key";
    /// Its secret.
    pub const SECRET: &'static str = "test-secret";

    /// Starts one on a free port; panics when it cannot.
    pub async fn start() -> Self {
        Self::try_start().await.unwrap()
    }

    async fn try_start() -> anyhow::Result<Self> {
        let program = tool("versitygw");
        ensure!(
            program.is_file(),
            "{} is missing: run `make s3` in the project",
            program.display()
        );
        let account = Account::unprivileged()?;
        let (directory, port) = (account::scratch("s3", account)?, free_port());
        let [root, properties, bucket] =
            ["data", "properties", "data/files"].map(|name| directory.join(name));
        for folder in [&root, &properties, &bucket] {
            account::lasting(folder, account)?;
        }
        let address = format!("127.0.0.1:{port}");
        let text = |path: &PathBuf| path.display().to_string();
        let args = [
            "--port",
            &address,
            "--access",
            Self::KEY_ID,
            "--secret",
            Self::SECRET,
            "--quiet",
            "posix",
            // Properties of objects are files, because not every file system has attributes.
            "--sidecar",
            &text(&properties),
            &text(&root),
        ];
        let server = Server::new(ServerSpec {
            name: "versitygw",
            program,
            args: args.map(str::to_owned).to_vec(),
            stop: Signal::SIGTERM,
            directory,
            is_scratch: true,
            account,
        })?;
        server.start().await?;
        let s3 = Self {
            server,
            port,
            bucket,
        };
        s3.answers().await?;
        Ok(s3)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The keys of the objects that are there, below a prefix without folders in it.
    pub fn objects(&self, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(self.bucket.join(prefix)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// kill -9.
    pub async fn kill(&self) {
        self.server.end(Signal::SIGKILL).await.unwrap();
    }

    /// Starts it again after [`S3::kill`], with what it held.
    pub async fn start_again(&self) {
        self.server.start().await.unwrap();
        self.answers().await.unwrap();
    }

    async fn answers(&self) -> anyhow::Result<()> {
        self.server
            .answers(|| async {
                let connecting = TcpStream::connect(("127.0.0.1", self.port));
                tokio::time::timeout(CONNECT_TIMEOUT, connecting)
                    .await
                    .context("it takes no connection")??;
                Ok(())
            })
            .await
    }
}
