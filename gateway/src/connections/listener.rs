//! Connections that cut a stalled reader (invariant 10, nothing grows without a bound).
//!
//! A stream's body produces an event only when the connection can send the event, so a stalled reader fills no memory.
//! Without a cut, a stalled reader would keep its socket for ever, and a graceful shutdown would wait for the reader.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use everturn_telemetry::gateway as telemetry;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_io_timeout::TimeoutWriter;

use super::slots::Unsent;

/// Bytes that the kernel buffers for a slow reader. The kernel's own structures count, too. Without a limit, the kernel
/// buffers up to 4 MB a connection. The limit is enough for 1 MB/s to a reader 250 ms away.
const SEND_BUFFER_BYTES: u32 = 256 * 1024;

/// Connections that may wait for `accept`. When another gateway stops, its readers may all connect at once.
const BACKLOG: u32 = 4096;

/// Listens on `address`, with bounded buffers. Must be called within a tokio runtime.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // Like `TcpListener::bind`: the next process may bind the port at once.
    socket.set_reuseaddr(true)?;
    // Connections inherit the size from the listening socket.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections whose writes fail after `stall_timeout` without progress.
pub(crate) struct StallGuardedListener {
    tcp: TcpListener,
    stall_timeout: Duration,
}

impl StallGuardedListener {
    /// Guards the connections of `tcp`.
    pub(crate) fn new(tcp: TcpListener, stall_timeout: Duration) -> Self {
        Self { tcp, stall_timeout }
    }
}

impl Listener for StallGuardedListener {
    type Io = Guarded<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.tcp).await;
        // Deltas are small, and Nagle's algorithm would delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps Nagle's algorithm");
        }
        (guarded(stream, self.stall_timeout), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// Wraps a connection so that writes, flushes and the shutdown fail when the peer reads no byte for `stall_timeout`. The
/// time begins anew with every finished operation.
fn guarded<Io: AsyncWrite>(io: Io, stall_timeout: Duration) -> Guarded<Io> {
    let mut writer = TimeoutWriter::new(io);
    writer.set_timeout(Some(stall_timeout));
    Guarded {
        io: Box::pin(writer),
        has_stalled: false,
        unsent: Unsent::default(),
    }
}

/// A connection with a metric for a cut after a stall. The stream on the connection cannot count the cut: the stream is
/// only dropped, like the stream of a reader who has left.
pub(crate) struct Guarded<Io> {
    io: Pin<Box<TimeoutWriter<Io>>>,
    has_stalled: bool,
    unsent: Unsent,
}

impl<Io> Guarded<Io> {
    /// Returns the answer that waits for the socket.
    pub(crate) fn unsent(&self) -> Unsent {
        self.unsent.clone()
    }

    fn noted<T>(&mut self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &done
            && error.kind() == io::ErrorKind::TimedOut
            && !std::mem::replace(&mut self.has_stalled, true)
        {
            telemetry::cut("stalled");
            tracing::info!(
                "a connection is closed: the client has read no byte for `stall_timeout`"
            );
        }
        done
    }
}

impl<Io: AsyncRead + AsyncWrite> AsyncRead for Guarded<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_read(context, buffer)
    }
}

impl<Io: AsyncWrite> AsyncWrite for Guarded<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = self.io.as_mut().poll_write(context, bytes);
        self.noted(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = self.io.as_mut().poll_write_vectored(context, bytes);
        self.noted(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.io.as_mut().poll_flush(context);
        // The HTTP library flushes the socket when the library's own buffer is empty.
        if matches!(done, Poll::Ready(Ok(()))) {
            self.unsent.sent();
        }
        self.noted(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.io.as_mut().poll_shutdown(context);
        self.noted(done)
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
        let mut server = guarded(server, TIMEOUT);
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
        let mut server = guarded(server, TIMEOUT);
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

    #[tokio::test]
    async fn vectored_writes_reach_the_socket() {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut listener = StallGuardedListener::new(listener, TIMEOUT);
        let (client, (server, _)) = tokio::join!(TcpStream::connect(address), listener.accept());
        client.unwrap();
        assert!(server.is_write_vectored());
    }
}
