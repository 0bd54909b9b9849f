//! Somebody on the way to a server, who takes what they are told.

use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// What a client of PostgreSQL begins with when it would like TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// Asks a client of PostgreSQL for its password, as it is.
const ASK_FOR_PASSWORD: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];

/// Which server it plays.
#[derive(Clone, Copy)]
pub(super) enum Plays {
    Postgres,
    /// One whose clients speak first.
    Any,
}

/// A listener on this machine. Its address is not one of those that count as this machine's own, so it stands for any.
pub(super) struct Thief {
    pub(super) port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
    callers: Arc<Mutex<usize>>,
}

impl Thief {
    /// Starts the listener. It speaks TLS when it is given a certificate.
    pub(super) async fn start(plays: Plays, certificate: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let thief = Self {
            port: listener.local_addr().unwrap().port(),
            heard: Arc::default(),
            callers: Arc::default(),
        };
        let (heard, callers) = (Arc::clone(&thief.heard), Arc::clone(&thief.callers));
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                *callers.lock().unwrap() += 1;
                let heard = Arc::clone(&heard);
                tokio::spawn(rob(caller, plays, certificate.clone(), heard));
            }
        });
        thief
    }

    /// Host and port of an address that leads here, and is not one of loopback. It works for PostgreSQL and Temporal.
    pub(super) fn address(&self) -> String {
        format!("0.0.0.0:{}", self.port)
    }

    /// The same address in the form that Redis takes.
    pub(super) fn mapped_address(&self) -> String {
        format!("[::ffff:127.0.0.1]:{}", self.port)
    }

    /// True when it has learnt this.
    pub(super) fn has_heard(&self, word: &str) -> bool {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).contains(word)
    }

    /// What it was told, TLS taken off.
    pub(super) fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }

    /// How many have connected to it.
    pub(super) fn callers(&self) -> usize {
        *self.callers.lock().unwrap()
    }
}

/// Listens to one caller until it goes. That it goes in the middle of something is its right.
async fn rob(
    mut caller: TcpStream,
    plays: Plays,
    certificate: Option<Arc<ServerConfig>>,
    heard: Arc<Mutex<Vec<u8>>>,
) {
    if matches!(plays, Plays::Postgres) {
        let mut first = [0; SSL_REQUEST.len()];
        if caller.read_exact(&mut first).await.is_err() {
            return;
        }
        if first == SSL_REQUEST {
            let answer = if certificate.is_some() { b"S" } else { b"N" };
            let _gone = caller.write_all(answer).await;
        } else {
            heard.lock().unwrap().extend(first);
        }
    }
    match certificate {
        Some(certificate) => {
            if let Ok(caller) = TlsAcceptor::from(certificate).accept(caller).await {
                listen(caller, plays, heard).await;
            }
        }
        None => listen(caller, plays, heard).await,
    }
}

async fn listen(
    mut caller: impl AsyncRead + AsyncWrite + Unpin,
    plays: Plays,
    heard: Arc<Mutex<Vec<u8>>>,
) {
    let mut said = [0; 4096];
    let mut asks = matches!(plays, Plays::Postgres);
    while let Ok(count @ 1..) = caller.read(&mut said).await {
        heard.lock().unwrap().extend(&said[..count]);
        if asks {
            let _gone = caller.write_all(&ASK_FOR_PASSWORD).await;
        }
        asks = false;
    }
}
