//! Runs the shell commands of the documents, as they are written there, against one `everturn dev` with the demo model.
//!
//! A page's blocks run in their order in one shell, so a block may use the variables of the blocks above. Every page finds
//! an API key of every scope in `KEY`, the files of the repository in its folder, and the conversations `hello` and `plan`.
//! `flags` checks commands of `temporal` that do not run. `tests/src/blocks.rs` has the words of blocks that do not run.

mod flags;

use std::{
    fs,
    os::unix::fs::symlink,
    process::{Output, Stdio},
    time::Duration,
};

use everturn_tests::{
    blocks::{self, Block, FOLLOWS},
    stack::{binary, ready},
    temporal,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

/// Time limit of a page, far more than the slowest page takes.
const LIMIT: Duration = Duration::from_mins(3);

/// Has curl say the status of each answer on standard error.
const CURLRC: &str = "write-out = \"%{stderr}HTTP %{http_code} %{url_effective}\\n\"\n";

/// The conversations that pages name, and their first messages.
const CONVERSATIONS: [(&str, &str); 2] = [
    ("hello", "What is 2 + 2?"),
    (
        "plan",
        "Plan a picnic: buy bread, find a meadow. What is 1/0?",
    ),
];

/// A PNG of one point, for the commands that upload a file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDAT\x08\xd7c`\0\0\0\x02\0\x01\xe2\x21\xbc\x33\0\0\0\0IEND\xaeB`\x82";

/// A running `everturn dev`, and the folder in which the commands run.
struct Dev {
    /// The folder with `work`, where commands run, and their output.
    directory: TempDir,
    /// Host and port of the gateway.
    address: String,
    environment: Vec<(&'static str, String)>,
    _process: Child,
}

impl Dev {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = directory.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (work, programs) = (folder("work"), folder("bin"));
        for entry in fs::read_dir(blocks::root()).unwrap() {
            let entry = entry.unwrap();
            symlink(entry.path(), work.join(entry.file_name())).unwrap();
        }
        symlink(binary(), programs.join("everturn")).unwrap();
        symlink(temporal::binary(), programs.join("temporal")).unwrap();
        fs::write(work.join("plan.png"), PNG).unwrap();
        fs::write(directory.path().join(".curlrc"), CURLRC).unwrap();
        let port = || format!("127.0.0.1:{}", temporal::free_port());
        let (address, temporal_address) = (port(), port());
        let path = std::env::var("PATH").unwrap();
        let environment = vec![
            ("PATH", format!("{}:{path}", programs.display())),
            ("HOME", directory.path().display().to_string()),
            ("EVERTURN_DATA_DIR", folder("data").display().to_string()),
            ("EVERTURN_URL", format!("http://{address}")),
            ("TEMPORAL_ADDRESS", temporal_address.clone()),
        ];
        let (_, temporal_port) = temporal_address.split_once(':').unwrap();
        let process = Command::new(binary())
            .args(["dev", "--listen", &address])
            .args(["--temporal-port", temporal_port, "--temporal-bin"])
            .arg(temporal::binary())
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env_remove("TEMPORAL_ADDRESS")
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        ready(&format!("http://{address}")).await;
        let mut dev = Self {
            directory,
            address,
            environment,
            _process: process,
        };
        dev.prepare().await;
        dev
    }

    /// Makes the key and the conversations that pages name.
    async fn prepare(&mut self) {
        for (conversation, message) in CONVERSATIONS {
            let body = json!({"conversation_id": conversation, "message": message});
            let command = format!(
                "curl -sN \"$EVERTURN_URL/api/v1/agent/chat\" -H 'content-type: application/json' -d '{body}'"
            );
            let output = self.shell(&command).await;
            let answer = String::from_utf8_lossy(&output.stdout);
            assert!(answer.contains("event: complete"), "{output:?}");
        }
        let scopes = "read,write,approve,codec,admin";
        let create = format!("everturn keys create --tenant default --scope {scopes}");
        let key = self.shell(&create).await;
        assert!(key.status.success(), "{key:?}");
        let key = String::from_utf8(key.stdout).unwrap().trim().to_owned();
        self.environment.push(("KEY", key));
    }

    /// Runs a script in the folder with the repository's files.
    async fn shell(&self, script: &str) -> Output {
        let run = Command::new("bash")
            .args(["-euc", script])
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.path().join("work"))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        timeout(LIMIT, run).await.expect(script).unwrap()
    }

    /// The block as a part of its page's script, with its standard output in a file.
    fn script_of(&self, block: &Block) -> String {
        let text = block.text.replace("localhost:8080", &self.address);
        let text = text.replace("127.0.0.1:8080", &self.address);
        let text = text.replace("target/debug/everturn", "everturn");
        let text = if block.is_shell() {
            text
        } else {
            format!("node --input-type=module <<'PROGRAM'\n{text}\nPROGRAM\n")
        };
        let line = block.line;
        let begin = format!("echo {line} >../line; out=../{line}");
        if block.word.as_deref() == Some(FOLLOWS) {
            // A job with a process group of its own, which ends when it has printed something.
            format!(
                "{begin}; set -m\n{{\n{text}\n}} >\"$out\" &\n\
                 until [ -s \"$out\" ]; do kill -0 $!; sleep 0.02; done\n\
                 kill -- -$! 2>/dev/null || true; set +m\n"
            )
        } else {
            format!("{begin}\n{{\n{text}\n}} >\"$out\"\n")
        }
    }

    /// Runs the blocks of a page. Returns its mistakes.
    async fn run(&self, page: &[Block]) -> Vec<String> {
        let runs = page.iter().filter(|block| block.is_run());
        let script: String = runs.map(|block| self.script_of(block)).collect();
        if script.is_empty() {
            return Vec::new();
        }
        let output = self.shell(&script).await;
        let said = String::from_utf8_lossy(&output.stderr);
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name));
        let line = read("line").unwrap();
        let place = format!("{}:{}", page[0].document, line.trim());
        if !output.status.success() {
            return vec![format!("{place}: {}\n{said}", output.status)];
        }
        let refused = said.lines().filter(|line| {
            let code = line
                .strip_prefix("HTTP ")
                .and_then(|rest| rest.split(' ').next());
            // 409 is about the state of a conversation, and not about the command.
            code.is_some_and(|code| !code.starts_with('2') && code != "409")
        });
        let refused = refused.map(|line| format!("{}: {line}", page[0].document));
        let shown = page.windows(2).flat_map(|pair| {
            let printed = read(&pair[0].line.to_string()).unwrap_or_default();
            let lacking = lacks_of_answer(&pair[0], &pair[1], &printed).into_iter();
            lacking.map(|key| format!("{}: the answer has no `{key}`", pair[1].place()))
        });
        refused.chain(shown).collect()
    }
}

/// The keys of a block of JSON right below a block of commands, which the commands have not printed.
fn lacks_of_answer(commands: &Block, shown: &Block, printed: &str) -> Vec<String> {
    let next = commands.line + commands.text.lines().count() + 2;
    let answer = serde_json::from_str::<Value>(printed);
    let (Ok(answer), true) = (answer, shown.language == "json" && shown.line == next) else {
        return Vec::new();
    };
    let is_problem = answer.get("code").is_some() && answer.get("title").is_some();
    match serde_json::from_str(&shown.text) {
        Ok(shown) if !is_problem => lacking(&shown, &answer),
        _ => Vec::new(),
    }
}

/// The keys of `shown` that `answer` has not. Of a list, the first entry counts.
fn lacking(shown: &Value, answer: &Value) -> Vec<String> {
    match (shown, answer) {
        (Value::Object(shown), Value::Object(answer)) => {
            let missing = shown.iter().flat_map(|(key, value)| match answer.get(key) {
                Some(answer) => lacking(value, answer),
                None => vec![key.clone()],
            });
            missing.collect()
        }
        (Value::Array(shown), Value::Array(answer)) => match (shown.first(), answer.first()) {
            (Some(shown), Some(answer)) => lacking(shown, answer),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn the_commands_of_the_documents_work_as_written() {
    let dev = Dev::start().await;
    let mut pages: Vec<Vec<Block>> = Vec::new();
    for block in blocks::all() {
        match pages.last_mut() {
            Some(page) if page[0].document == block.document => page.push(block),
            _ => pages.push(vec![block]),
        }
    }
    let mut wrong = Vec::new();
    for page in &pages {
        wrong.extend(dev.run(page).await);
    }
    assert!(
        wrong.is_empty(),
        "Mend the block. A block that tests cannot run has a word behind `sh` (CONTRIBUTING.md, \"Blocks of code\"):\n{}",
        wrong.join("\n")
    );
}
