//! A server as a child process, with one JSON-RPC message per line on standard input and output.
//!
//! rmcp also has a transport for child processes, but with an unsuitable limit (docs/libraries.md, rmcp: a message
//! over the limit). This transport skips an overlong message, and ends its request alone. Invalid UTF-8
//! is replaced, not refused. This transport notices the end of the child even if a process started by the child holds
//! the output open. It stops the whole process group.

use std::{
    io,
    process::Stdio,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_supervisor::{GroupEnd, ProcessGroup, Signal};
use everturn_untrusted::Secrets;
use rmcp::{
    RoleClient,
    model::{GetExtensions, JsonRpcMessage, RequestId},
    service::TxJsonRpcMessage,
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::{Mutex, mpsc},
    time::timeout,
};

use super::{
    lenient::{self, MAX_SKIPPED, Message},
    lines::Lines,
    stderr::{Log, Tail},
};

/// The most messages read ahead. Further messages wait in the pipe, and make the server wait.
const READ_AHEAD: usize = 4;
/// The time for the child to end after its input is closed, and again after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for reading the child's output after its end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for the next line of a message in several lines.
const LINE_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason when this side ended a connection: an overlong message. Calls in flight read the reason.
pub(super) type Ending = Arc<OnceLock<String>>;

/// Whether the child may have read a request. The flag is an extension of the request: rmcp passes it to the
/// transport, but does not send it.
#[derive(Debug, Clone, Default)]
pub(super) struct Written(Arc<AtomicBool>);

impl Written {
    /// Returns true when at least the first byte was written. Before the first byte the child knows nothing of the
    /// request.
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn begins(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A running server. Dropping the transport kills the server.
pub(super) struct ChildTransport {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    process: Arc<Mutex<Process>>,
    log: Log,
}

struct Process {
    child: Child,
    /// The child and its descendants.
    group: ProcessGroup,
    messages: mpsc::Receiver<Message>,
    has_ended: bool,
}

impl ChildTransport {
    /// Starts the command, with the environment that every server gets. `name` is the server's name in the log. The
    /// server's output is read and logged without the secrets.
    pub(super) fn start(
        name: &str,
        mut command: Command,
        environment: &[(String, String)],
        secrets: Secrets,
        max_message_bytes: usize,
        ending: Ending,
        tail: Tail,
    ) -> io::Result<Self> {
        // Ctrl-C in the worker's terminal does not reach the group, because the worker ends its servers in order. A
        // killed worker takes the group with it, because a busy server may not notice the end of its input.
        let group = ProcessGroup::start(&GroupEnd::KILL)?;
        let mut child = command
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(group.id())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a pipe to the child is missing"));
        };
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        tokio::spawn(read_messages(
            name.to_owned(),
            stdout,
            secrets.clone(),
            max_message_bytes,
            sender,
            ending,
        ));
        Ok(Self {
            log: Log::of(name.to_owned(), secrets, stderr, tail),
            stdin: Arc::new(Mutex::new(Some(stdin))),
            process: Arc::new(Mutex::new(Process {
                child,
                group,
                messages,
                has_ended: false,
            })),
        })
    }

    /// Returns the log of the server: its standard error.
    pub(super) fn log(&self) -> &Log {
        &self.log
    }
}

impl Transport<RoleClient> for ChildTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let stdin = Arc::clone(&self.stdin);
        let written: Option<Written> = match &message {
            JsonRpcMessage::Request(request) => request.request.extensions().get().cloned(),
            _ => None,
        };
        async move {
            let mut line = serde_json::to_vec(&message).map_err(io::Error::other)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let stdin = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let mut rest = line.as_slice();
            // A child that has ended accepts no byte.
            stdin.write_buf(&mut rest).await?;
            if let Some(written) = written {
                written.begins();
            }
            stdin.write_all(rest).await?;
            stdin.flush().await
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        self.process.lock().await.next().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.process.lock().await.close(&self.stdin).await;
        Ok(())
    }
}

impl Process {
    /// Returns the next message, or `None` when the child has ended. Cancel safe.
    async fn next(&mut self) -> Option<Message> {
        if !self.has_ended {
            tokio::select! {
                biased;
                message = self.messages.recv() => return message,
                _status = self.child.wait() => self.has_ended = true,
            }
        }
        timeout(DRAIN_TIMEOUT, self.messages.recv())
            .await
            .ok()
            .flatten()
    }

    /// Closes the child's input. A child that does not end gets SIGTERM, and is killed at last.
    async fn close(&mut self, stdin: &Mutex<Option<ChildStdin>>) {
        let leave = async {
            drop(stdin.lock().await.take());
            self.child.wait().await
        };
        if timeout(END_TIMEOUT, leave).await.is_err() {
            if let Err(error) = self.group.signal(Signal::SIGTERM) {
                tracing::warn!(%error, "an MCP server cannot be told to end");
            }
            let _still_runs = timeout(END_TIMEOUT, self.child.wait()).await;
        }
        // Kills the remaining processes of the group.
        self.group.end().await;
        let _killed = timeout(END_TIMEOUT, self.child.wait()).await;
    }
}

/// Reads messages until the server's output ends, the receiver is gone, or a message is too large.
async fn read_messages(
    server: String,
    stdout: impl AsyncRead + Unpin,
    secrets: Secrets,
    max_bytes: usize,
    messages: mpsc::Sender<Message>,
    ending: Ending,
) {
    let mut stdout = BufReader::new(stdout);
    let mut lines = Lines::default();
    loop {
        let is_late = lines.are_open() && timeout(LINE_TIMEOUT, stdout.fill_buf()).await.is_err();
        if is_late && !deliver(&server, &secrets, lines.end(), &messages).await {
            return;
        }
        // Every message gets a new buffer, so that the memory of a large message is freed.
        let mut line = Vec::new();
        let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        match (&mut stdout).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) => {
                deliver(&server, &secrets, lines.end(), &messages).await;
                return;
            }
            Ok(_) if line.ends_with(b"\n") => {}
            Ok(_) if line.len() >= max_bytes => {
                let why = format!(
                    "the server sent a message of more than {max_bytes} bytes (`max_message_bytes`)"
                );
                let Some(id) = skip_message(&mut stdout, &line, max_bytes).await else {
                    let _first_wins = ending.set(why);
                    return;
                };
                tracing::warn!(server, why, "a call of an MCP server has failed");
                if messages.send(lenient::unreadable(id, &why)).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(server, %error, "the output of an MCP server cannot be read");
                return;
            }
        }
        if !deliver(&server, &secrets, lines.add(line, max_bytes), &messages).await {
            return;
        }
    }
}

/// Sends the messages in the texts. Returns false when the receiver is gone.
async fn deliver(
    server: &str,
    secrets: &Secrets,
    texts: Vec<Vec<u8>>,
    messages: &mpsc::Sender<Message>,
) -> bool {
    for text in texts {
        for message in parse(server, secrets, &text) {
            if messages.send(message).await.is_err() {
                return false;
            }
        }
    }
    true
}

/// Skips the rest of a message over the limit, without keeping the message. Returns the id of the request that the message
/// answers; `None` when the message has no id, or does not end soon.
async fn skip_message(
    stdout: &mut BufReader<impl AsyncRead + Unpin>,
    begin: &[u8],
    max_bytes: usize,
) -> Option<RequestId> {
    let mut finder = lenient::IdFinder::default();
    finder.read(begin);
    let mut skipped = begin.len();
    while skipped < max_bytes.saturating_mul(MAX_SKIPPED) {
        let bytes = stdout.fill_buf().await.ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let read = end.map_or(bytes.len(), |end| end + 1);
        if read == 0 {
            return None;
        }
        finder.read(bytes.get(..read)?);
        stdout.consume(read);
        skipped += read;
        if end.is_some() {
            return finder.found();
        }
    }
    None
}

/// Parses the messages in a line. Returns none for any other line, because some servers also print other text.
fn parse(server: &str, secrets: &Secrets, line: &[u8]) -> Vec<Message> {
    let text = secrets.cut_json(String::from_utf8_lossy(line).into_owned());
    let text = text.trim();
    let reading = lenient::read(text);
    if reading.messages.is_empty() && !text.is_empty() {
        tracing::debug!(server, "an MCP server sent a line that is no message");
    }
    lenient::warn(server, &reading.flaws);
    reading.messages
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use everturn_supervisor::launch::{COMMON_VARIABLES, Launch};
    use proptest::prelude::*;

    use super::*;

    const MAX_BYTES: usize = 64 * 1024;

    fn start(script: &str) -> (ChildTransport, Ending) {
        let launch = Launch::unconfined();
        let mut command = Command::from(launch.command("/bin/sh", &COMMON_VARIABLES).unwrap());
        command.args(["-c", script]);
        let ending = Ending::default();
        (
            ChildTransport::start(
                "test",
                command,
                &[],
                Secrets::default(),
                MAX_BYTES,
                ending.clone(),
                Tail::default(),
            )
            .unwrap(),
            ending,
        )
    }

    fn text(message: &Message) -> String {
        serde_json::to_string(message).unwrap()
    }

    #[tokio::test]
    async fn an_endless_message_ends_the_connection_and_is_not_kept() {
        let (mut server, ending) = start("exec yes | tr -d '\\n'");
        assert!(server.receive().await.is_none());
        assert!(
            ending.get().unwrap().contains("more than 65536 bytes"),
            "{ending:?}"
        );
        server.close().await.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_message_is_skipped_and_what_is_no_utf_8_is_read() {
        let answer =
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"caf\351"}]}}"#;
        let (mut server, _) = start(&format!("printf 'Listening …\\n\\n{{\\n{answer}\\n'"));
        let message = server.receive().await.unwrap();
        assert!(text(&message).contains("caf\u{FFFD}"), "{}", text(&message));
        assert!(server.receive().await.is_none(), "it has ended");
    }

    #[tokio::test]
    async fn a_server_that_leaves_something_running_has_ended_all_the_same() {
        let (mut server, _) =
            start("sleep 600 & echo '{\"jsonrpc\":\"2.0\",\"id\":'$!',\"result\":{}}'");
        let began = Instant::now();
        let JsonRpcMessage::Response(said) = server.receive().await.unwrap() else {
            panic!("no answer")
        };
        assert!(server.receive().await.is_none());
        // The command line of a process that has ended is empty, also while nobody has reaped it.
        let file = format!("/proc/{}/cmdline", said.id);
        let runs = || std::fs::read(&file).is_ok_and(|line| !line.is_empty());
        assert!(runs());
        server.close().await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        while runs() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "what it started is gone"
            );
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_message_over_the_limit_ends_its_request_alone() {
        let answer = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        let (mut server, ending) = start(&format!(
            "printf '{{\"id\":1,\"result\":\"'; head -c 200000 /dev/zero | tr '\\0' x; echo '\"}}'; echo '{answer}'"
        ));
        let first = text(&server.receive().await.unwrap());
        assert!(
            first.contains("\"id\":1") && first.contains("65536 bytes"),
            "{first}"
        );
        assert_eq!(text(&server.receive().await.unwrap()), answer);
        assert!(ending.get().is_none());
    }

    #[tokio::test]
    async fn a_server_gets_no_variable_it_was_not_given() {
        let (mut server, _) = start(
            r#"printf '{"jsonrpc":"2.0","id":1,"result":{"keys":"%s"}}\n' "$(env | tr '\n' ' ')""#,
        );
        let message = text(&server.receive().await.unwrap());
        assert!(
            message.contains("PATH=") && !message.contains("CARGO"),
            "{message}"
        );
    }

    /// The last message gets no end, so that only its id is known.
    #[tokio::test]
    async fn messages_in_several_lines_and_in_one_line_are_read() {
        let laid_out = r#"{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {}\n}\n"#;
        let batch =
            r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3.0,"result":{}}]\n"#;
        let cut = r#"{"jsonrpc":"2.0","id":4,"result":{"con\n"#;
        let (mut server, _) = start(&format!("printf '{laid_out}{batch}{cut}'; exec sleep 600"));
        for id in 1..=4 {
            let message = text(&server.receive().await.unwrap());
            assert!(message.contains(&format!("\"id\":{id}")), "{message}");
            assert_eq!(message.contains("error"), id == 4, "{message}");
        }
    }

    #[test]
    fn a_message_that_is_too_deep_ends_its_request() {
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#);
        let message = parse("test", &Secrets::default(), line.as_bytes()).remove(0);
        assert!(matches!(message, JsonRpcMessage::Error(_)), "{message:?}");
    }

    proptest! {
        /// The lines of a hostile server are messages, or are left out. What is too long ends the connection.
        #[test]
        fn any_output_is_read_within_the_limit(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            lines in prop::collection::vec(r#"\{"jsonrpc":"2\.0",("id":("?[0-9]{0,4}"?|null),)?"(result|error|method)":[ -~]{0,12}\}"#, 0..5),
        ) {
            const LIMIT: usize = 64;
            let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .start_paused(true).build().unwrap();
            for output in [bytes, lines.join("\n").into_bytes()] {
                let ending = Ending::default();
                let (sender, mut messages) = mpsc::channel(READ_AHEAD);
                let read = read_messages("test".to_owned(), output.as_slice(), Secrets::default(), LIMIT, sender, ending.clone());
                let count = async {
                    let mut count = 0;
                    while messages.recv().await.is_some() {
                        count += 1;
                    }
                    count
                };
                let ((), count) = runtime.block_on(async { tokio::join!(read, count) });
                let objects = output.split(|byte| *byte == b'{').count() - 1;
                prop_assert!(count <= objects);
                let has_long_line = output.split(|byte| *byte == b'\n').any(|line| line.len() >= LIMIT);
                prop_assert_eq!(ending.get().is_some(), has_long_line);
            }
        }
    }
}
