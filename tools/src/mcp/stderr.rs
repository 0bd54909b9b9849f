//! The standard error of a server as a child process: logged line by line, with the last line kept for a failed start.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use everturn_supervisor::launch::FAILED_PREFIX;
use everturn_untrusted::Secrets;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The longest logged line of a server's standard error.
const MAX_LOG_BYTES: u64 = 2000;
/// The time for the last line of a child that has ended. A process that the child has started may hold the pipe open.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The log of a server. Clones share the log.
#[derive(Clone, Default)]
pub(super) struct Log {
    last_line: Arc<std::sync::Mutex<String>>,
    has_ended: CancellationToken,
}

impl Log {
    /// Reads a server's standard error until the end, and logs each line without the secrets. `server` is the server's
    /// name in the log.
    pub(super) fn of(
        server: String,
        secrets: Secrets,
        stderr: impl AsyncRead + Unpin + Send + 'static,
    ) -> Self {
        let log = Self::default();
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
        let line = self.kept().clone();
        (!line.is_empty()).then_some(line)
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
                text.clone_into(&mut self.kept());
            }
            line.clear();
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, String> {
        self.last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_tells_why_a_program_has_ended() {
        let written =
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'mcp'\n\n";
        let log = Log::of("shop".to_owned(), Secrets::default(), written.as_bytes());
        assert_eq!(
            log.last_line().await.unwrap(),
            "ModuleNotFoundError: No module named 'mcp'"
        );
        let log = Log::of("shop".to_owned(), Secrets::default(), &b"\n"[..]);
        assert_eq!(log.last_line().await, None);
    }

    #[tokio::test]
    async fn the_last_line_has_no_secrets() {
        let secrets = Secrets::of(["hunter2hunter2"]);
        let written = &b"the token hunter2hunter2 is wrong\n"[..];
        let log = Log::of("shop".to_owned(), secrets, written);
        let line = log.last_line().await.unwrap();
        assert!(
            !line.contains("hunter2") && line.ends_with("is wrong"),
            "{line}"
        );
    }
}
