//! Connections that cut a reader that has stopped reading (invariant 10).
//!
//! A stream's body is pulled by its connection, so a reader that stalls holds no events; but it would hold its
//! socket for ever, and a graceful shutdown up.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
    time::{Sleep, sleep},
};

/// Bytes that the kernel keeps for a reader that does not take them (it counts its own structures, too). Left alone it
/// grows this to 4 MB a connection. Enough for 1 MB/s to a reader 250 ms away.
const SEND_BUFFER_BYTES: u32 = 256 * 1024;

/// Connections that may wait to be accepted: all readers of another gateway may come at once.
const BACKLOG: u32 = 4096;

/// Listens on `address`, with bounded buffers. Must be called within a tokio runtime.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // As `TcpListener::bind` does: the port is free for the next process at once.
    socket.set_reuseaddr(true)?;
    // Connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections whose writes fail after `stall_timeout` without progress.
pub struct StallGuardedListener {
    tcp: TcpListener,
    stall_timeout: Duration,
}

impl StallGuardedListener {
    /// Guards the connections of `tcp`.
    pub fn new(tcp: TcpListener, stall_timeout: Duration) -> Self {
        Self { tcp, stall_timeout }
    }
}

impl Listener for StallGuardedListener {
    type Io = StallGuarded<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.tcp).await;
        // Deltas are small and must not wait for one another.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps Nagle's algorithm");
        }
        (StallGuarded::new(stream, self.stall_timeout), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// A connection whose writes time out when the other side takes nothing.
#[derive(Debug)]
pub struct StallGuarded<Io> {
    io: Io,
    stall_timeout: Duration,
    /// Runs while a write waits.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<Io> StallGuarded<Io> {
    /// Guards `io`.
    pub fn new(io: Io, stall_timeout: Duration) -> Self {
        Self {
            io,
            stall_timeout,
            stall: None,
        }
    }

    /// Passes on a finished write; fails one that has waited too long.
    fn guard<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.stall = None;
            return write;
        }
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(sleep(self.stall_timeout)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the reader stopped reading",
        )))
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for StallGuarded<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for StallGuarded<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write(context, bytes);
        self.guard(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.guard(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.io).poll_flush(context);
        self.guard(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.io).poll_shutdown(context);
        self.guard(context, shutdown)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::Instant,
    };

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_is_cut() {
        let (server, _client) = tokio::io::duplex(8);
        let mut server = StallGuarded::new(server, TIMEOUT);
        let started = Instant::now();
        let error = server.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(
            (error.kind(), started.elapsed()),
            (io::ErrorKind::TimedOut, TIMEOUT)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_not() {
        let (server, mut client) = tokio::io::duplex(8);
        let mut server = StallGuarded::new(server, TIMEOUT);
        let reading = tokio::spawn(async move {
            let mut bytes = [0; 8];
            for _ in 0..8 {
                tokio::time::sleep(TIMEOUT / 2).await;
                client.read_exact(&mut bytes).await.unwrap();
            }
        });
        server.write_all(&[0; 64]).await.unwrap();
        reading.await.unwrap();
    }
}
