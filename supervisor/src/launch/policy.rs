//! The rights and limits of a program.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{limits::Limits, user::User};

/// A program's user, limits and access. The program also loses its capabilities and cannot gain rights from setuid
/// programs. On a kernel with Landlock, the program can inspect and signal only the processes that it has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The user of the program; `None`: the user of this process.
    pub user: Option<User>,
    /// The program's resource limits.
    pub limits: Limits,
    /// The program's files and ports.
    pub access: Access,
    /// True: the program starts only if the kernel can enforce every rule of `access`.
    pub requires_landlock: bool,
}

/// Files and ports that a program may reach. Landlock enforces them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Files and folders to read and run, besides the system's files and the paths of `write`; `None`: no restriction
    /// beyond the user's rights.
    pub read: Option<Vec<PathBuf>>,
    /// Files and folders to change and read; `None`: no restriction beyond the user's rights.
    pub write: Option<Vec<PathBuf>>,
    /// TCP ports to connect to; `None`: any port except `closed_ports`.
    pub connect_ports: Option<Vec<u16>>,
    /// TCP ports that only `connect_ports` can open: the ports of the engine, the database and Redis. A program that
    /// reaches the engine can approve tool calls of every tenant.
    #[serde(default)]
    pub closed_ports: Vec<u16>,
}
