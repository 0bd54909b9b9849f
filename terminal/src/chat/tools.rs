//! Client tools of the user from `--tool name=command`. The command gets the call's input as JSON on standard input,
//! and its standard output is the result.

use std::{process::Stdio, str::FromStr, time::Duration};

use everturn_supervisor::{GroupEnd, ProcessGroup};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

/// The most bytes of a result. A gateway accepts 1 MiB of JSON, and a byte of text may need several bytes of JSON.
const MAX_OUTPUT_BYTES: u64 = 256 * 1024;

/// The most bytes of a command's standard error that are kept.
const MAX_SAID_BYTES: u64 = 4096;

/// A tool that the user offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The client tool of the agent.
    pub name: String,
    /// The command line, for `sh -c`.
    pub command: String,
    /// The longest duration of the command.
    pub limit: Duration,
}

/// The output of a command.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) result: Value,
    pub(super) is_error: bool,
    /// A short summary for the user.
    pub(super) about: String,
}

impl Output {
    /// Returns the output for a call that another client began before it was lost.
    pub(super) fn unknown() -> Self {
        failed("another client had begun the call and was lost; the call may have had an effect")
    }
}

impl FromStr for Offered {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let offered = text.split_once('=');
        let offered = offered.map(|(name, command)| (name.trim(), command.trim()));
        let offered = offered.filter(|(name, command)| !name.is_empty() && !command.is_empty());
        let (name, command) =
            offered.ok_or("write the tool as name=command, for example `open_file=./open.sh`")?;
        Ok(Self {
            name: name.to_owned(),
            command: command.to_owned(),
            limit: Duration::from_secs(60),
        })
    }
}

impl Offered {
    /// Runs the command. Dropping the future or reaching the time limit kills the command.
    pub(super) async fn run(&self, input: &Value, execution_id: &str) -> Output {
        let limit = self.limit;
        match timeout(limit, self.run_to_its_end(input, execution_id)).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => failed(&format!("the command could not be run: {error}")),
            Err(_) => failed(&format!(
                "the command was ended after {}",
                humantime::format_duration(limit)
            )),
        }
    }

    async fn run_to_its_end(&self, input: &Value, execution_id: &str) -> std::io::Result<Output> {
        // Ctrl-C is for the chat. Processes that the command leaves behind end with the group.
        let group = ProcessGroup::start(&GroupEnd::KILL)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            // A repeated call has an identical id.
            .env("EVERTURN_EXECUTION_ID", execution_id)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(group.id());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let input = input.to_string();
        let give = async {
            // A command may ignore its input.
            if let Some(mut stdin) = stdin {
                let _unread = stdin.write_all(input.as_bytes()).await;
            }
        };
        let stdout = read(child.stdout.take(), MAX_OUTPUT_BYTES);
        let stderr = read(child.stderr.take(), MAX_SAID_BYTES);
        let ((), (written, is_whole), (said, _)) = tokio::join!(give, stdout, stderr);
        if !is_whole {
            let limit = MAX_OUTPUT_BYTES / 1024;
            return Ok(failed(&format!("the command wrote more than {limit} KiB")));
        }
        ended(&mut child, &written, &said).await
    }
}

async fn ended(child: &mut Child, written: &str, said: &str) -> std::io::Result<Output> {
    let status = child.wait().await?;
    if status.success() {
        let result = serde_json::from_str(written.trim());
        let result = result.unwrap_or_else(|_| Value::String(written.trim_end().to_owned()));
        return Ok(Output {
            result,
            is_error: false,
            about: "has run here".to_owned(),
        });
    }
    let result = json!({ "error": status.to_string(), "stderr": said, "stdout": written });
    Ok(Output {
        result,
        is_error: true,
        about: format!("failed here: {status}"),
    })
}

fn failed(why: &str) -> Output {
    Output {
        result: json!({ "error": why }),
        is_error: true,
        about: format!("failed here: {why}"),
    }
}

/// Reads up to `limit` bytes. Returns the text, and whether the text is complete.
async fn read(from: Option<impl AsyncRead + Unpin>, limit: u64) -> (String, bool) {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let _what_came = from.take(limit + 1).read_to_end(&mut bytes).await;
    }
    let is_whole = bytes.len() as u64 <= limit;
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    (String::from_utf8_lossy(&bytes).into_owned(), is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(command: &str, limit: Duration) -> Output {
        let tool = Offered {
            limit,
            ..format!("t={command}").parse().unwrap()
        };
        tool.run(&json!({"a": 1}), "exec_1").await
    }

    #[tokio::test]
    async fn a_command_gets_the_input_and_gives_the_result() {
        let minute = Duration::from_mins(1);
        assert_eq!(run("cat", minute).await.result, json!({"a": 1}));
        assert_eq!(run("echo two words", minute).await.result, "two words");
        assert_eq!(
            run("echo $EVERTURN_EXECUTION_ID", minute).await.result,
            "exec_1"
        );
        let failed = run("echo no >&2; exit 3", minute).await;
        assert!(failed.is_error, "{failed:?}");
        assert_eq!(failed.result["stderr"], "no\n");
    }

    #[tokio::test]
    async fn a_run_has_limits() {
        let endless = run("yes", Duration::from_mins(1)).await;
        assert!(
            endless.is_error && endless.about.contains("256 KiB"),
            "{}",
            endless.about
        );
        let slow = run("sleep 1000", Duration::from_millis(50)).await;
        assert!(
            slow.is_error && slow.about.contains("ended after 50ms"),
            "{}",
            slow.about
        );
    }

    #[test]
    fn an_offer_has_a_name_and_a_command() {
        let offered: Offered = "a=b --c=d".parse().unwrap();
        assert_eq!(
            (offered.name.as_str(), offered.command.as_str()),
            ("a", "b --c=d")
        );
        for wrong in ["a", "=b", "a="] {
            assert!(
                wrong
                    .parse::<Offered>()
                    .unwrap_err()
                    .contains("name=command")
            );
        }
    }
}
