//! The standard error of a server as a child process: logged line by line, with the last lines kept for warnings.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_supervisor::launch::FAILED_PREFIX;
use everturn_untrusted::{Secrets, cut};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The longest logged line of a server's standard error.
const MAX_LOG_BYTES: u64 = 2000;
/// The last lines that are kept: about as many as the end of a stack trace.
const KEPT_LINES: usize = 10;
/// The most characters of a kept line.
const MAX_KEPT_CHARS: usize = 300;
/// The time for the last line of a child that has ended. A process that the child has started may hold the pipe open.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The last lines on the standard error of a server's present process. Clones share the lines.
#[derive(Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Returns the lines, the newest last. Lines without a letter are not kept.
    pub(super) fn lines(&self) -> Vec<String> {
        self.kept().iter().cloned().collect()
    }

    fn clear(&self) {
        self.kept().clear();
    }

    fn add(&self, line: &str) {
        let mut kept = self.kept();
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(cut(line, MAX_KEPT_CHARS));
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of a process. Clones share the log.
#[derive(Clone)]
pub(super) struct Log {
    tail: Tail,
    has_ended: CancellationToken,
}

impl Log {
    /// Reads a server's standard error until the end, and logs each line without the secrets. `server` is the server's
    /// name in the log. `tail` gets the last lines, without the lines of an earlier process.
    pub(super) fn of(
        server: String,
        secrets: Secrets,
        stderr: impl AsyncRead + Unpin + Send + 'static,
        tail: Tail,
    ) -> Self {
        tail.clear();
        let log = Self {
            tail,
            has_ended: CancellationToken::new(),
        };
        let reads = log.clone();
        tokio::spawn(async move {
            let _ended = reads.has_ended.drop_guard_ref();
            reads.read(&server, &secrets, stderr).await;
        });
        log
    }

    /// Waits for the end of the log, and returns the last line that is not empty; `None` for an empty log. A program
    /// that cannot start tells the reason in this line.
    pub(super) async fn last_line(&self) -> Option<String> {
        let _open = timeout(END_TIMEOUT, self.has_ended.cancelled()).await;
        self.tail.kept().back().cloned()
    }

    async fn read(&self, server: &str, secrets: &Secrets, stderr: impl AsyncRead + Unpin) {
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        while let Ok(1..) = (&mut stderr)
            .take(MAX_LOG_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            let text = secrets.cut(String::from_utf8_lossy(&line).into_owned());
            let text = text.trim_end();
            tracing::debug!(server, "{text}");
            let text = text.strip_prefix(FAILED_PREFIX).unwrap_or(text);
            if !text.trim().is_empty() {
                self.tail.add(text);
            }
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_tells_why_a_program_has_ended() {
        let written =
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'mcp'\n\n";
        let tail = Tail::default();
        let log = |written| {
            let secrets = Secrets::default();
            Log::of("shop".to_owned(), secrets, written, tail.clone())
        };
        assert_eq!(
            log(written.as_bytes()).last_line().await.unwrap(),
            "ModuleNotFoundError: No module named 'mcp'"
        );
        assert_eq!(tail.lines().len(), 2);
        let log = log(&b"\n"[..]);
        assert_eq!(log.last_line().await, None);
    }

    #[tokio::test]
    async fn the_last_lines_are_few_and_short() {
        let lines: Vec<_> = (0..100)
            .map(|n| format!("{n} {}\n", "x".repeat(1000)))
            .collect();
        let written = lines.concat();
        let tail = Tail::default();
        let (name, secrets) = ("shop".to_owned(), Secrets::default());
        let log = Log::of(name, secrets, std::io::Cursor::new(written), tail.clone());
        assert!(log.last_line().await.unwrap().starts_with("99 "));
        let lines = tail.lines();
        assert!(lines.len() == KEPT_LINES && lines[0].starts_with("90 "));
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() <= MAX_KEPT_CHARS + 1)
        );
    }

    #[tokio::test]
    async fn the_last_line_has_no_secrets() {
        let secrets = Secrets::of(["hunter2hunter2"]);
        let written = &b"the token hunter2hunter2 is wrong\n"[..];
        let log = Log::of("shop".to_owned(), secrets, written, Tail::default());
        let line = log.last_line().await.unwrap();
        assert!(
            !line.contains("hunter2") && line.ends_with("is wrong"),
            "{line}"
        );
    }
}
