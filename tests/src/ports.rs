//! Ports for the servers of tests.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the ports that the kernel gives to outgoing connections: a server that is stopped finds its port free when it
/// starts again.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port nobody listens on. A process gets each one only once (until it has seen them all).
pub fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Test binaries that run at the same time begin at different places.
    let offset = std::process::id() % 251 * 37;
    let next = || u32::from(TAKEN.fetch_add(1, Ordering::Relaxed)) + offset;
    let mut ports = (0..COUNT).map(|_| FIRST + u16::try_from(next() % u32::from(COUNT)).unwrap());
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("all ports are taken")
}
