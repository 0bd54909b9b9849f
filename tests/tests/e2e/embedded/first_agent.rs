//! The way of docs/start/first-agent.md (and the first command of README.md), from the page alone: the blocks of the page run as a newcomer runs them. Prints the
//! time of the way, without the installation of the Python package, which tests have installed.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    time::Instant,
};

use everturn_tests::{
    blocks, mcp,
    stack::{binary, ready},
    temporal::{self, free_port},
};
use tokio::process::{Child, Command};

const PAGE: &str = "docs/start/first-agent.md";

/// The folder of a newcomer, and the address of the gateway.
struct Newcomer {
    directory: tempfile::TempDir,
    port: u16,
}

impl Newcomer {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            port: free_port(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.directory.path().join("tea-shop")
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A program in a folder, with `everturn` on PATH and without keys of providers.
    fn command(&self, program: &str, folder: &Path) -> Command {
        let mut path = binary().parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(env::var_os("PATH").unwrap());
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env("PATH", path)
            .env("EVERTURN_URL", self.url())
            .env("EVERTURN_DATA_DIR", self.directory.path().join("data"))
            .env_remove("OPENAI_API_KEY")
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("GEMINI_API_KEY")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a block of the page, and returns the output.
    async fn runs(&self, block: &str, folder: &Path) -> String {
        let output = self.command("sh", folder).args(["-ec", block]).output();
        let output = output.await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{said}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn starts_dev(&self) -> Child {
        let listen = format!("127.0.0.1:{}", self.port);
        let temporal_port = free_port().to_string();
        let log = fs::File::create(self.directory.path().join("dev.log")).unwrap();
        let dev = self
            .command("everturn", &self.folder())
            .args([
                "dev",
                "--watch",
                "--listen",
                &listen,
                "--temporal-port",
                &temporal_port,
            ])
            .arg("--temporal-bin")
            .arg(temporal::binary())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        ready(&self.url()).await;
        dev
    }
}

#[tokio::test]
async fn the_page_leads_to_an_agent_with_a_tool_of_its_own() {
    let begun = Instant::now();
    let newcomer = Newcomer::new();
    let page = blocks::of(PAGE);
    let of = |language: &str, word: Option<&str>| {
        let found = page
            .iter()
            .filter(|block| block.language == language && block.word.as_deref() == word);
        found.map(|block| block.text.as_str()).collect::<Vec<_>>()
    };
    let [init, tools, chat] = of("sh", Some("own-test"))[..] else {
        panic!("{PAGE} has three blocks of commands that run here");
    };

    let said = newcomer.runs(init, newcomer.directory.path()).await;
    for (name, language) in [("everturn.toml", "toml"), ("tools.py", "python")] {
        let written = fs::read_to_string(newcomer.folder().join(name)).unwrap();
        assert_eq!(
            of(language, None),
            [written.as_str()],
            "{PAGE} shows {name}"
        );
    }
    let install = of("sh", Some("build"))[0].trim();
    assert!(
        said.contains(install),
        "init prints the commands of {PAGE}: {said}"
    );
    let python = mcp::python("python");
    symlink(
        python.ancestors().nth(2).unwrap(),
        newcomer.folder().join(".venv"),
    )
    .unwrap();

    let said = newcomer.runs(tools, &newcomer.folder()).await;
    assert!(
        said.contains("shop__order_status") && said.contains("read"),
        "{said}"
    );
    assert!(said.contains("shipped on Monday"), "{said}");

    let mut dev = newcomer.starts_dev().await;
    let said = newcomer.runs(chat, &newcomer.folder()).await;
    for line in of("text", None)[0]
        .lines()
        .filter(|line| !line.starts_with('✓'))
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    dev.kill().await.unwrap();
    println!("from `everturn init` to the answer: {:?}", begun.elapsed());
}
