//! A line to a server of this machine that can lose what one side says, and be cut.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};

/// What a line loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What clients say.
    Requests,
    /// What the server says.
    Answers,
}

/// Passes connections on to a port of this machine.
pub struct Line {
    /// Where clients connect to.
    pub port: u16,
    requests: Arc<Loss>,
    answers: Arc<Loss>,
    /// Counts cuts: connections end when it changes.
    cuts: watch::Sender<u32>,
}

#[derive(Default)]
struct Loss {
    is_on: AtomicBool,
    bytes: AtomicU64,
}

impl Line {
    /// A line to this port, whole at first.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let line = Self {
            port: listener.local_addr().unwrap().port(),
            requests: Arc::default(),
            answers: Arc::default(),
            cuts: watch::Sender::new(0),
        };
        let (requests, answers, cuts) = (
            line.requests.clone(),
            line.answers.clone(),
            line.cuts.clone(),
        );
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
                    continue;
                };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pass(
                    from_client,
                    to_server,
                    requests.clone(),
                    cuts.subscribe(),
                ));
                tokio::spawn(pass(
                    from_server,
                    to_client,
                    answers.clone(),
                    cuts.subscribe(),
                ));
            }
        });
        line
    }

    /// From now on what is said in this direction is lost, and nobody is told.
    pub fn lose(&self, direction: Direction) {
        self.loss(direction).is_on.store(true, Ordering::SeqCst);
    }

    /// Bytes lost in this direction.
    pub fn lost(&self, direction: Direction) -> u64 {
        self.loss(direction).bytes.load(Ordering::SeqCst)
    }

    /// Ends every connection; new ones are whole.
    pub fn cut(&self) {
        for loss in [&self.requests, &self.answers] {
            loss.is_on.store(false, Ordering::SeqCst);
        }
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    fn loss(&self, direction: Direction) -> &Loss {
        match direction {
            Direction::Requests => &self.requests,
            Direction::Answers => &self.answers,
        }
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    loss: Arc<Loss>,
    mut cuts: watch::Receiver<u32>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = tokio::select! {
            read = from.read(&mut buffer) => read.unwrap_or(0),
            _ = cuts.changed() => 0,
        };
        if count == 0 {
            return;
        }
        if loss.is_on.load(Ordering::SeqCst) {
            loss.bytes.fetch_add(count as u64, Ordering::SeqCst);
        } else if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
