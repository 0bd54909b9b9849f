//! A TCP proxy between clients and a server of this machine, which can hold back, lose or end what they say. So a process
//! can be killed at an exact moment, between asking and hearing, with nothing built into it for that.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What goes through; the rest is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Everything.
    All,
    /// What clients say; the server's answers are held back.
    Requests,
    /// Nothing.
    Nothing,
}

/// Who speaks to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What clients say.
    Requests,
    /// What the server says.
    Answers,
}

/// What becomes of a piece that one side has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is passed on.
    Pass,
    /// It is not passed on, and this direction of the connection ends.
    End,
}

/// Looks at what passes through, piece by piece as it arrives.
pub trait Inspector: Send + Sync + 'static {
    /// A piece has arrived on a connection; those of one proxy have different numbers.
    fn inspect(&self, connection: u64, direction: Direction, piece: &[u8]) -> Verdict;
}

/// A running proxy. Its connections last as long as the test's runtime.
pub struct Proxy {
    port: u16,
    switches: Arc<Switches>,
}

/// What a test has decided.
struct Switches {
    passing: watch::Sender<Passing>,
    requests: Loss,
    answers: Loss,
    /// Counts cuts: connections end when it changes.
    cuts: watch::Sender<u32>,
    inspector: Option<Arc<dyn Inspector>>,
}

#[derive(Default)]
struct Loss {
    is_on: AtomicBool,
    bytes: AtomicU64,
}

impl Proxy {
    /// A proxy to a port of this machine, which passes everything at first.
    pub async fn to(port: u16) -> Self {
        Self::start(port, None).await
    }

    /// A proxy that shows what passes to an inspector.
    pub async fn inspected(port: u16, inspector: Arc<dyn Inspector>) -> Self {
        Self::start(port, Some(inspector)).await
    }

    async fn start(port: u16, inspector: Option<Arc<dyn Inspector>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            switches: Arc::new(Switches {
                passing: watch::Sender::new(Passing::All),
                requests: Loss::default(),
                answers: Loss::default(),
                cuts: watch::Sender::new(0),
                inspector,
            }),
        };
        tokio::spawn(accept(listener, port, proxy.switches.clone()));
        proxy
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets this go through from now on; what was held back before comes first.
    pub fn pass(&self, passing: Passing) {
        self.switches.passing.send_replace(passing);
    }

    /// Loses from now on what is said in this direction, and tells nobody.
    pub fn lose(&self, direction: Direction) {
        let loss = self.switches.loss(direction);
        loss.is_on.store(true, Ordering::SeqCst);
    }

    /// Bytes lost in this direction.
    pub fn lost(&self, direction: Direction) -> u64 {
        self.switches.loss(direction).bytes.load(Ordering::SeqCst)
    }

    /// Ends every connection; new ones lose nothing.
    pub fn cut(&self) {
        for direction in [Direction::Requests, Direction::Answers] {
            let loss = self.switches.loss(direction);
            loss.is_on.store(false, Ordering::SeqCst);
        }
        self.switches.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Switches {
    fn loss(&self, direction: Direction) -> &Loss {
        match direction {
            Direction::Requests => &self.requests,
            Direction::Answers => &self.answers,
        }
    }

    fn inspect(&self, connection: u64, direction: Direction, piece: &[u8]) -> Verdict {
        match &self.inspector {
            Some(inspector) => inspector.inspect(connection, direction, piece),
            None => Verdict::Pass,
        }
    }
}

impl Passing {
    fn lets(self, direction: Direction) -> bool {
        match self {
            Self::All => true,
            Self::Requests => direction == Direction::Requests,
            Self::Nothing => false,
        }
    }
}

async fn accept(listener: TcpListener, port: u16, switches: Arc<Switches>) {
    let mut connection = 0;
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
            continue;
        };
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        connection += 1;
        let ((from_client, to_client), (from_server, to_server)) =
            (client.into_split(), server.into_split());
        for (from, to, direction) in [
            (from_client, to_server, Direction::Requests),
            (from_server, to_client, Direction::Answers),
        ] {
            tokio::spawn(forward(from, to, connection, direction, switches.clone()));
        }
    }
}

/// Forwards one direction of a connection until a side is gone, or it is cut.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    connection: u64,
    direction: Direction,
    switches: Arc<Switches>,
) {
    let mut passing = switches.passing.subscribe();
    let mut cuts = switches.cuts.subscribe();
    let loss = switches.loss(direction);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = tokio::select! {
            read = from.read(&mut buffer) => read.unwrap_or(0),
            _ = cuts.changed() => return,
        };
        let piece = &buffer[..count];
        if piece.is_empty() || switches.inspect(connection, direction, piece) == Verdict::End {
            return;
        }
        if loss.is_on.load(Ordering::SeqCst) {
            loss.bytes.fetch_add(count as u64, Ordering::SeqCst);
            continue;
        }
        tokio::select! {
            open = passing.wait_for(|passing| passing.lets(direction)) => drop(open),
            _ = cuts.changed() => return,
        }
        if to.write_all(piece).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn say(stream: &mut TcpStream, text: &[u8; 1]) {
        stream.write_all(text).await.unwrap();
    }

    async fn hear(stream: &mut TcpStream) -> u8 {
        stream.read_u8().await.unwrap()
    }

    #[tokio::test]
    async fn holds_back_what_it_is_told_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::to(listener.local_addr().unwrap().port()).await;
        let mut process = TcpStream::connect(("127.0.0.1", proxy.port()))
            .await
            .unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        say(&mut process, b"1").await;
        assert_eq!(hear(&mut server).await, b'1');

        proxy.pass(Passing::Requests);
        say(&mut process, b"2").await;
        assert_eq!(hear(&mut server).await, b'2');
        say(&mut server, b"3").await;
        proxy.pass(Passing::Nothing);
        say(&mut process, b"4").await;

        proxy.pass(Passing::All);
        assert_eq!(
            (hear(&mut process).await, hear(&mut server).await),
            (b'3', b'4')
        );
        drop(server);
        assert!(process.read_u8().await.is_err(), "the end is passed on");
    }

    #[tokio::test]
    async fn loses_and_cuts_what_it_is_told_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::to(listener.local_addr().unwrap().port()).await;
        let mut process = TcpStream::connect(("127.0.0.1", proxy.port()))
            .await
            .unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        proxy.lose(Direction::Requests);
        say(&mut process, b"1").await;
        while proxy.lost(Direction::Requests) == 0 {
            tokio::task::yield_now().await;
        }
        say(&mut server, b"2").await;
        assert_eq!(hear(&mut process).await, b'2');

        proxy.cut();
        assert!(process.read_u8().await.is_err());
        assert!(server.read_u8().await.is_err());
        let mut process = TcpStream::connect(("127.0.0.1", proxy.port()))
            .await
            .unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        say(&mut process, b"3").await;
        assert_eq!(hear(&mut server).await, b'3');
    }
}
