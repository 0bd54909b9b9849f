//! A TCP proxy between a process and a server, which can hold back what either says. So a process can be killed at
//! an exact moment, between asking and hearing, with nothing built into it for that.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Everything.
    All,
    /// What the process says; the server's replies are held back.
    Requests,
    /// Nothing.
    Nothing,
}

/// A running proxy. Its connections last as long as the test.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    passing: watch::Sender<Passing>,
}

impl Proxy {
    /// A proxy that passes everything to a server on 127.0.0.1.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let passing = watch::Sender::new(Passing::All);
        tokio::spawn(accept(
            listener,
            SocketAddr::from(([127, 0, 0, 1], port)),
            passing.clone(),
        ));
        Self {
            port: own_port,
            passing,
        }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on this goes through; what was held back before comes first.
    pub fn pass(&self, passing: Passing) {
        self.passing.send_replace(passing);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, passing: watch::Sender<Passing>) {
    while let Ok((process, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(server).await else {
            continue;
        };
        let ((from_process, to_process), (from_server, to_server)) =
            (process.into_split(), server.into_split());
        let requests = |passing: &Passing| *passing != Passing::Nothing;
        tokio::spawn(forward(
            from_process,
            to_server,
            passing.subscribe(),
            requests,
        ));
        tokio::spawn(forward(
            from_server,
            to_process,
            passing.subscribe(),
            |passing| *passing == Passing::All,
        ));
    }
}

/// Forwards one direction to its end; a side that is gone ends it.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passing: watch::Receiver<Passing>,
    may_pass: impl Fn(&Passing) -> bool,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if passing.wait_for(&may_pass).await.is_err()
            || to.write_all(&buffer[..length]).await.is_err()
        {
            break;
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
}
