//! Ports for the servers of tests.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io,
    net::TcpListener,
    ops::Range,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Below the ports that the kernel gives to outgoing connections: a server that is stopped finds its port free when it
/// starts again.
const PORTS: Range<u16> = 20_000..30_000;

/// How far above its own port Temporal's dev server has its web UI: such ports are not given.
const UI_DISTANCE: u16 = 1000;

/// The ports of this process: a lock on a file for each, which ends with the process, however it ends.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port nobody listens on, reserved for this process: no other test gets it, in this process or in another one.
pub fn free_port() -> u16 {
    let directory = directory().unwrap();
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    for port in PORTS.filter(|port| (port / UI_DISTANCE).is_multiple_of(2)) {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(port.to_string()));
        // Another user's file is another user's port.
        let Ok(file) = file else { continue };
        if file.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            reserved.push(file);
            return port;
        }
    }
    panic!("all ports are taken");
}

fn directory() -> io::Result<PathBuf> {
    let directory = env::temp_dir().join("everturn-test-ports");
    if fs::create_dir(&directory).is_ok() {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o1777))?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once() {
        let mut ports: Vec<_> = (0..20).map(|_| free_port()).collect();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
