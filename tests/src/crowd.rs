//! Many readers of event streams, over raw TCP, because an HTTP client for each would cost more than what is measured.
//!
//! Each chunk of the response holds whole frames. So the readers take the body line by line, and do not decode chunks:
//! the size lines of the chunks do not look like any field of a frame.

use std::{
    hash::{DefaultHasher, Hasher},
    io,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, future::join_all, stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};

use crate::wait;

/// Number of streams that are being opened at the same time.
const OPENING: usize = 64;
/// Bytes that a replay reads at a time.
const REPLAY_BYTES: usize = 256 * 1024;
/// Number of file descriptors that a process needs beside those of its streams.
const OTHER_FILES: usize = 500;

/// Readers with open streams. The streams are closed when this is dropped.
pub struct Crowd {
    readers: Vec<Reader>,
    latencies: Arc<Mutex<Vec<Duration>>>,
}

struct Reader {
    path: String,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

/// What a reader has seen after the frame `replay`.
#[derive(Default)]
struct Seen {
    is_open: AtomicBool,
    has_ended: AtomicBool,
    last_event: AtomicU32,
    /// Number of events that did not come right after the one before.
    misplaced: AtomicU64,
    texts: AtomicU64,
    /// Hash of all frames in their order, so that the readers of one conversation can be compared.
    digest: AtomicU64,
}

/// What a whole crowd has seen.
#[derive(Debug, PartialEq, Eq)]
pub struct Sight {
    /// Sequence numbers of the last events of the readers, each number once.
    pub last_events: Vec<u32>,
    /// The smallest number of text frames that any reader got.
    pub min_texts: u64,
    /// Number of different sequences of frames that readers got.
    pub sequences: usize,
    /// Number of events, of all readers, that did not come right after the one before: something between them is lost,
    /// or came twice.
    pub misplaced: u64,
    /// Number of readers whose stream has ended.
    pub ended: usize,
}

impl Crowd {
    /// Opens `count` streams, each at the path that `path` returns for its number, and waits until all have begun.
    pub async fn open(address: SocketAddr, count: usize, path: impl Fn(usize) -> String) -> Self {
        let latencies = Arc::new(Mutex::new(Vec::new()));
        let readers = stream::iter(0..count)
            .map(|number| Reader::open(address, path(number), Arc::clone(&latencies)))
            .buffered(OPENING)
            .collect()
            .await;
        let crowd = Self { readers, latencies };
        crowd.have_begun().await;
        crowd
    }

    async fn have_begun(&self) {
        let is_open = |reader: &Reader| reader.seen.is_open.load(Ordering::Relaxed);
        wait::until("all streams have begun", || async {
            self.readers.iter().all(is_open).then_some(())
        })
        .await;
    }

    /// Closes all streams. The readers remember the last events that they have seen.
    pub fn close(&self) {
        for reader in &self.readers {
            reader.task.abort();
        }
    }

    /// Opens all streams again at the same time, each behind the last event of its reader, and waits until all have
    /// begun.
    pub async fn come_back(&mut self, address: SocketAddr) {
        let latencies = Arc::clone(&self.latencies);
        let back = self.readers.iter_mut().map(|reader| {
            let latencies = Arc::clone(&latencies);
            async move {
                reader.seen.is_open.store(false, Ordering::Relaxed);
                let last = reader.seen.last_event.load(Ordering::Relaxed);
                let path = format!("{}?cursor={last}", reader.path);
                let (connection, buffer) = served(address, &path).await;
                let seen = Arc::clone(&reader.seen);
                reader.task = tokio::spawn(read(connection, buffer, seen, latencies));
            }
        });
        join_all(back).await;
        self.have_begun().await;
    }

    /// Returns how many events up to this one are missing, over all readers.
    pub fn missing(&self, last_event: u32) -> u64 {
        let last_events = self.readers.iter().map(|reader| &reader.seen.last_event);
        last_events
            .map(|seen| u64::from(last_event.saturating_sub(seen.load(Ordering::Relaxed))))
            .sum()
    }

    /// Returns what all readers have seen so far.
    pub fn sight(&self) -> Sight {
        let seen = || self.readers.iter().map(|reader| &reader.seen);
        let mut last_events: Vec<_> = seen()
            .map(|seen| seen.last_event.load(Ordering::Relaxed))
            .collect();
        let mut digests: Vec<_> = seen()
            .map(|seen| seen.digest.load(Ordering::Relaxed))
            .collect();
        last_events.sort_unstable();
        last_events.dedup();
        digests.sort_unstable();
        digests.dedup();
        Sight {
            last_events,
            min_texts: seen()
                .map(|seen| seen.texts.load(Ordering::Relaxed))
                .min()
                .unwrap_or(0),
            sequences: digests.len(),
            misplaced: seen()
                .map(|seen| seen.misplaced.load(Ordering::Relaxed))
                .sum(),
            ended: seen()
                .filter(|seen| seen.has_ended.load(Ordering::Relaxed))
                .count(),
        }
    }

    /// Waits until the last event of every reader is the one with this sequence number.
    pub async fn saw(&self, event: u32) {
        wait::until(&format!("all have seen event {event}"), || async {
            (self.sight().last_events == [event]).then_some(())
        })
        .await;
    }

    /// Returns the times between [`stamp`] and arrival of all texts since the last call, sorted.
    pub fn take_latencies(&self) -> Vec<Duration> {
        let mut latencies = std::mem::take(&mut *self.latencies.lock().unwrap());
        latencies.sort_unstable();
        latencies
    }

    /// Returns how many latencies [`Crowd::take_latencies`] would return.
    pub fn latencies(&self) -> usize {
        self.latencies.lock().unwrap().len()
    }
}

impl Reader {
    async fn open(address: SocketAddr, path: String, latencies: Arc<Mutex<Vec<Duration>>>) -> Self {
        let (connection, buffer) = served(address, &path).await;
        let seen = Arc::new(Seen::default());
        let task = tokio::spawn(read(connection, buffer, Arc::clone(&seen), latencies));
        Self { path, seen, task }
    }
}

/// Asks for a stream until it is served: again when the gateway cannot serve it now (503), as clients do.
async fn served(address: SocketAddr, path: &str) -> (TcpStream, Vec<u8>) {
    wait::until(&format!("{path} is served"), || async {
        let (connection, buffer) = ask(address, path).await.unwrap();
        let head = String::from_utf8_lossy(&buffer);
        match head.split(' ').nth(1) {
            Some("200") => Some((connection, buffer)),
            Some("503") => None,
            _ => panic!("{path}: {head}"),
        }
    })
    .await
}

/// Sends the request for a stream, and returns the connection with the first bytes of the response, which hold its
/// first line.
async fn ask(address: SocketAddr, path: &str) -> io::Result<(TcpStream, Vec<u8>)> {
    let mut connection = TcpStream::connect(address).await?;
    connection
        .write_all(request(address, path).as_bytes())
        .await?;
    let mut buffer = Vec::new();
    while !buffer.contains(&b'\n') {
        if connection.read_buf(&mut buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((connection, buffer))
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a stream from its beginning until so many events have come, which must be in order and without a gap. Returns
/// the number of bytes.
pub async fn replay(address: SocketAddr, path: &str, events: u32) -> usize {
    let (mut connection, mut buffer) = ask(address, path).await.unwrap();
    let (mut bytes, mut last) = (buffer.len(), 0);
    loop {
        let end = buffer.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        for line in buffer[..end].split(|byte| *byte == b'\n') {
            if let Some(number) = event_number(line) {
                assert_eq!(number, last + 1, "an event is lost or comes twice");
                last = number;
            }
        }
        if last >= events {
            return bytes;
        }
        buffer.drain(..end);
        buffer.reserve(REPLAY_BYTES);
        let read = connection.read_buf(&mut buffer).await.unwrap();
        assert!(read > 0, "the stream has ended behind event {last}");
        bytes += read;
    }
}

/// Opens a stream and reads nothing of it. Its receive buffer is small, so that a little text is enough to fill it.
pub async fn open_and_stop(address: SocketAddr, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut connection = socket.connect(address).await.unwrap();
    connection
        .write_all(request(address, path).as_bytes())
        .await
        .unwrap();
    connection
}

fn request(address: SocketAddr, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n")
}

/// Reads a stream to its end. `buffer` holds what was read of it so far.
async fn read(
    mut connection: TcpStream,
    mut buffer: Vec<u8>,
    seen: Arc<Seen>,
    latencies: Arc<Mutex<Vec<Duration>>>,
) {
    let mut digest = DefaultHasher::new();
    loop {
        if let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') {
            for line in buffer[..end].split(|byte| *byte == b'\n') {
                seen.take(line, &mut digest, &latencies);
            }
            buffer.drain(..=end);
        }
        // There are many idle readers, so the buffer of each is small.
        if buffer.is_empty() && buffer.capacity() > 1024 {
            buffer = Vec::new();
        }
        match connection.read_buf(&mut buffer).await {
            Ok(bytes) if bytes > 0 => {}
            Ok(_) | Err(_) => break,
        }
    }
    seen.has_ended.store(true, Ordering::Relaxed);
}

impl Seen {
    fn take(&self, line: &[u8], digest: &mut DefaultHasher, latencies: &Mutex<Vec<Duration>>) {
        if let Some(number) = event_number(line) {
            let before = self.last_event.swap(number, Ordering::Relaxed);
            if number != before + 1 {
                self.misplaced.fetch_add(1, Ordering::Relaxed);
            }
        }
        let Some(data) = line.strip_prefix(b"data: ") else {
            return;
        };
        if data.starts_with(br#"{"type":"replay""#) {
            return self.is_open.store(true, Ordering::Relaxed);
        }
        if data.starts_with(br#"{"type":"text_"#) {
            self.texts.fetch_add(1, Ordering::Relaxed);
        }
        digest.write(data);
        self.digest.store(digest.finish(), Ordering::Relaxed);
        if let Some(latency) = age(data) {
            latencies.lock().unwrap().push(latency);
        }
    }
}

/// Returns the sequence number of the event whose `id:` a line is.
fn event_number(line: &[u8]) -> Option<u32> {
    let id = line.strip_prefix(b"id: ")?;
    let number = id.split(|byte| *byte == b'-').next()?;
    Some(std::str::from_utf8(number).unwrap().parse().unwrap())
}

/// Returns a text that contains the time at which it was made.
pub fn stamp(padding: usize) -> String {
    format!(
        "@{}@{}",
        started().elapsed().as_micros(),
        "x".repeat(padding)
    )
}

/// Returns the times since the tokens of a text were made, each a [`stamp`] without padding.
pub fn ages(text: &str) -> impl Iterator<Item = Duration> {
    let now = started().elapsed();
    let made = text.split('@').filter_map(|part| part.parse().ok());
    made.map(move |made| now.saturating_sub(Duration::from_micros(made)))
}

/// Returns the time since the text of a frame was made, if the text is a [`stamp`].
fn age(data: &[u8]) -> Option<Duration> {
    let data = std::str::from_utf8(data).ok()?;
    let (_, text) = data.split_once(r#""text":"@"#)?;
    ages(text).next()
}

fn started() -> Instant {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    *STARTED.get_or_init(Instant::now)
}

/// Raises the limit of open files, so that this process, and those it starts from now on, can have so many streams.
pub fn allow_streams(count: usize) {
    let (process, limit) = (std::process::id().to_string(), count + OTHER_FILES);
    let limits = Command::new("prlimit")
        .args([
            "--pid",
            &process,
            "--nofile",
            "--output=SOFT",
            "--noheadings",
        ])
        .output();
    let soft: usize = String::from_utf8(limits.unwrap().stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap_or(usize::MAX);
    if soft < limit {
        let raised = Command::new("prlimit")
            .args(["--pid", &process, &format!("--nofile={limit}:")])
            .status();
        assert!(
            raised.unwrap().success(),
            "{limit} open files are needed: raise the hard limit"
        );
    }
}

/// Returns the memory that a process uses, in bytes.
pub fn resident_bytes(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace()
        .next()
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

/// Returns the percentile: the value below which `per_cent` of the latencies are.
pub fn percentile(sorted: &[Duration], per_cent: usize) -> Duration {
    sorted
        .get((sorted.len() * per_cent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_lost_or_come_twice_are_counted() {
        let misplaced = |ids: &[&str]| {
            let seen = Seen::default();
            for id in ids {
                let line = format!("id: {id}");
                seen.take(
                    line.as_bytes(),
                    &mut DefaultHasher::new(),
                    &Mutex::default(),
                );
            }
            seen.misplaced.load(Ordering::Relaxed)
        };
        assert_eq!(misplaced(&["1-aa", "2-bb", "3-cc"]), 0);
        assert_eq!(misplaced(&["1-aa", "3-cc"]), 1);
        assert_eq!(misplaced(&["1-aa", "2-bb", "2-bb", "3-cc"]), 1);
        assert_eq!(misplaced(&["2-bb"]), 1);
    }
}
