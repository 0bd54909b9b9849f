//! The resources of a program: limits of the kernel, which child processes inherit.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::{error::LaunchError, user::User};

/// Resource limits of a program. A limit holds for every process of the program separately, except the number of
/// processes. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of private writable memory of a process (`RLIMIT_DATA`). The address space is not limited: node reserves
    /// tens of GB of addresses and never uses them.
    pub memory_bytes: Option<u64>,
    /// Open files and connections of a process.
    pub open_files: Option<u64>,
    /// Processes and threads of the program's user, other programs of the user included. The kernel does not limit
    /// root.
    pub processes: Option<u64>,
    /// The size of a file that a process writes, in bytes.
    pub file_bytes: Option<u64>,
    /// Seconds of processor time in the life of a process.
    pub cpu_seconds: Option<u64>,
}

impl Limits {
    /// Returns the default limits:
    ///
    /// - 4 GiB of memory: a large MCP server in node or Python takes less than one
    /// - 4096 open files: four times what most systems have as a default
    /// - 512 processes for a user of the program alone, enough for a browser with its threads; 8192 if the program has
    ///   our user, because the kernel counts our own threads and the desktop's
    /// - 1 GiB for a file: installers of packages write less
    /// - no limit of processor time, because a server lives as long as its worker
    pub fn default_for(user: Option<&User>) -> Self {
        let has_own_user = user.is_some_and(|user| !user.is_current());
        Self {
            memory_bytes: Some(4 << 30),
            open_files: Some(4096),
            processes: Some(if has_own_user { 512 } else { 8192 }),
            file_bytes: Some(1 << 30),
            cpu_seconds: None,
        }
    }

    /// Limits this process, and the program after exec. The kernel writes no memory dump, because a dump may have keys.
    pub(super) fn apply(&self) -> Result<(), LaunchError> {
        let limits = [
            ("the memory", Resource::RLIMIT_DATA, self.memory_bytes),
            (
                "the number of open files",
                Resource::RLIMIT_NOFILE,
                self.open_files,
            ),
            (
                "the number of processes",
                Resource::RLIMIT_NPROC,
                self.processes,
            ),
            ("the size of files", Resource::RLIMIT_FSIZE, self.file_bytes),
            ("the processor time", Resource::RLIMIT_CPU, self.cpu_seconds),
            ("dumps of memory", Resource::RLIMIT_CORE, Some(0)),
        ];
        for (what, resource, limit) in limits {
            let Some(limit) = limit else { continue };
            lower(resource, limit).map_err(|source| LaunchError::Limit { what, source })?;
        }
        Ok(())
    }
}

/// Sets a limit, unless the present limit is lower. Only root may raise a limit.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let limit = limit.min(hard);
    Ok(setrlimit(resource, limit, limit)?)
}
