//! The other end of a connection to a store, for checks of a configuration before the store is opened.

/// The other end of a connection to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A file, or a socket in the file system. Data stays on this machine.
    Local,
    /// A server.
    Server {
        /// The server's name or address.
        host: String,
        /// The TLS mode, in PostgreSQL's words. Only `verify-full` proves the server's identity.
        sslmode: &'static str,
    },
}
