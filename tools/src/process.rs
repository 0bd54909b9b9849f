//! Runs programs for tools. Every program has its own process group. The group is killed when the program has ended,
//! when the tool's future is dropped, and when the worker dies, even by kill -9. Only a process that leaves the group
//! (with setsid) goes on. `[processes]` of everturn.toml restricts programs (docs/operate/isolation.md).

use std::{
    ffi::OsStr,
    io,
    process::{ExitStatus, Stdio},
    sync::OnceLock,
    time::Duration,
};

use everturn_supervisor::{
    GroupEnd, ProcessGroup,
    launch::{self, Launch},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
};

use crate::context::ToolContext;

/// The launch settings for the programs of all tools. The settings are global, so that no tool can omit the settings.
static LAUNCH: OnceLock<Launch> = OnceLock::new();
/// The time for reading the rest of the output after the program has ended. A process outside the group may hold the
/// pipe open for ever.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a program.
#[derive(Debug)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// The standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// The standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// True when the program wrote more than the limit. The rest was read and discarded.
    pub is_cut: bool,
}

/// Sets the launch settings for the programs of all tools. Only the first call has an effect. Without a call,
/// programs have the rights of this process.
pub fn start_with(launch: Launch) {
    let _first_counts = LAUNCH.set(launch);
}

/// Runs a program to its end. The program has no standard input and no variable but PATH, because the worker's
/// environment holds secrets. At most `max_bytes` of each output are kept. Dropping the future kills the program and
/// its descendants.
pub async fn run<S: AsRef<OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = S>,
    max_bytes: usize,
) -> io::Result<Finished> {
    run_with(program, arguments, max_bytes, Vec::new()).await
}

/// Runs a program like [`run`], with variables about the caller: `EVERTURN_TENANT_ID`, `EVERTURN_OWNER_ID`,
/// `EVERTURN_CONVERSATION_ID`, `EVERTURN_AGENT`, `EVERTURN_AGENT_EXECUTION_ID` and `EVERTURN_EXECUTION_ID`. A
/// conversation without an owner has no owner variable. A value with a NUL is an error.
pub async fn run_for<S: AsRef<OsStr>>(
    context: &ToolContext,
    program: &str,
    arguments: impl IntoIterator<Item = S>,
    max_bytes: usize,
) -> io::Result<Finished> {
    run_with(program, arguments, max_bytes, context.variables()?).await
}

async fn run_with<S: AsRef<OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = S>,
    max_bytes: usize,
    variables: Vec<(String, String)>,
) -> io::Result<Finished> {
    let group = ProcessGroup::start(&GroupEnd::KILL)?;
    let launch = LAUNCH.get_or_init(Launch::unconfined);
    let mut child = Command::from(launch.command(program, &[])?)
        .args(arguments)
        .envs(variables)
        .process_group(group.id())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut output = (Kept::default(), Kept::default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let status = {
        let reading = async {
            tokio::join!(
                output.0.read(stdout, max_bytes),
                output.1.read(stderr, max_bytes)
            )
        };
        tokio::pin!(reading);
        let mut is_read = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                _ = &mut reading, if !is_read => is_read = true,
            }
        };
        // Dropping the group kills remaining processes, and so closes the pipes.
        drop(group);
        if !is_read {
            // Reads the rest in the pipes. A process outside the group may hold the pipes open for ever.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
        }
        status
    };
    if let Some(error) = launch::failure(status.code(), &output.1.bytes) {
        return Err(error);
    }
    let is_cut = output.0.is_cut || output.1.is_cut;
    Ok(Finished {
        status,
        stdout: output.0.bytes,
        stderr: output.1.bytes,
        is_cut,
    })
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Kept {
    /// Reads to the end and keeps at most `max_bytes`. Without a reader, the program would wait for ever.
    async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>, max_bytes: usize) {
        let Some(mut pipe) = pipe else { return };
        let mut piece = vec![0; 64 * 1024];
        // A pipe with a read error counts as ended.
        while let Ok(count @ 1..) = pipe.read(&mut piece).await {
            let room = max_bytes - self.bytes.len();
            self.is_cut |= count > room;
            self.bytes.extend_from_slice(&piece[..count.min(room)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Instant};

    use super::*;

    async fn sh(script: &str) -> Finished {
        run("sh", ["-c", script], 1000).await.unwrap()
    }

    #[tokio::test]
    async fn output_and_status_are_kept() {
        let finished = sh("echo out; echo err >&2; exit 3").await;
        assert_eq!(
            (finished.stdout, finished.stderr),
            (b"out\n".to_vec(), b"err\n".to_vec())
        );
        assert_eq!((finished.status.code(), finished.is_cut), (Some(3), false));
    }

    #[tokio::test]
    async fn a_program_gets_no_secrets_and_no_input() {
        let finished = run("env", [] as [&str; 0], 1000).await.unwrap();
        let text = String::from_utf8(finished.stdout).unwrap();
        assert!(text.lines().all(|line| line.starts_with("PATH=")), "{text}");
        assert_eq!(sh("cat").await.stdout, b"");
    }

    #[tokio::test]
    async fn a_program_knows_for_whom_it_runs() {
        let context = ToolContext {
            tenant_id: "acme".into(),
            owner_id: Some("ann; rm -rf / \n".into()),
            ..crate::testing::context()
        };
        let script = [
            "-c",
            "printf %s \"$EVERTURN_TENANT_ID/$EVERTURN_OWNER_ID/$EVERTURN_EXECUTION_ID\"",
        ];
        let finished = run_for(&context, "sh", script, 1000).await.unwrap();
        assert_eq!(
            String::from_utf8(finished.stdout).unwrap(),
            "acme/ann; rm -rf / \n/exec_0123456789ab"
        );
    }

    #[tokio::test]
    async fn much_output_is_cut_and_read_to_its_end() {
        let finished = sh("head -c 5000000 /dev/zero; echo end >&2").await;
        assert_eq!((finished.stdout.len(), finished.is_cut), (1000, true));
        assert_eq!(finished.stderr, b"end\n");
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_it() {
        let started = Instant::now();
        let finished = sh("sleep 600 & echo $!").await;
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "its child held the output open"
        );
        gone(&finished.stdout).await;
    }

    #[tokio::test]
    async fn a_program_that_does_not_exist_is_an_error() {
        let error = run("everturn-no-such-program", [] as [&str; 0], 1000)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_dropped_program_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pids");
        let script = format!(
            "(sleep 600 & echo $! >> {0}; wait) & echo $! >> {0}; wait",
            file.display()
        );
        let running = tokio::spawn(async move { sh(&script).await });
        let pids = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.matches('\n').count() == 2 {
                break text;
            }
            tokio::task::yield_now().await;
        };
        running.abort();
        gone(pids.as_bytes()).await;
    }

    /// Waits until each of these processes has ended. A zombie has ended.
    async fn gone(pids: &[u8]) {
        let pids = String::from_utf8(pids.to_vec()).unwrap();
        for pid in pids.split_whitespace() {
            let is_alive = || {
                let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"))
                    .unwrap_or_default();
                stat.rsplit_once(')')
                    .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
            };
            while is_alive() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
