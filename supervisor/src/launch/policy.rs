//! What a program may do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    domain::{self, Enforcement},
    limits::Limits,
    user::User,
};

/// What a program may do. It also loses all capabilities, may not gain rights by setuid programs, and where the kernel
/// has Landlock it cannot look into processes or signal them, except those that it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The user as which it runs; `None`: that of this process.
    pub user: Option<User>,
    /// What it may take.
    pub limits: Limits,
    /// What it may reach.
    pub access: Access,
    /// Whether it is started only where the kernel can enforce all of `access`.
    pub requires_landlock: bool,
}

/// Files and ports that a program may reach. Landlock enforces them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Files and folders that it may read and run, besides those of the system and those of `write`; `None`: all that
    /// its user may.
    pub read: Option<Vec<PathBuf>>,
    /// Files and folders that it may change, and read; `None`: all that its user may.
    pub write: Option<Vec<PathBuf>>,
    /// TCP ports that it may connect to; `None`: all.
    pub connect_ports: Option<Vec<u16>>,
}

impl Policy {
    /// How much of this the running kernel enforces.
    pub fn enforcement(&self) -> Enforcement {
        domain::enforcement(&self.access)
    }
}
