//! What a program may take: resource limits of the kernel, which its children inherit.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::{error::LaunchError, user::User};

/// Resource limits of a program. Each holds for every process that it starts, one by one, except for the number of
/// processes. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory that a process may write to and shares with nobody (`RLIMIT_DATA`). This is not the address space:
    /// node and others reserve tens of GB of that and never use them.
    pub memory_bytes: Option<u64>,
    /// Files and connections that a process has open.
    pub open_files: Option<u64>,
    /// Processes and threads of the program's user, those of others with the same user included. The kernel does not
    /// limit root.
    pub processes: Option<u64>,
    /// Bytes of a file that a process writes.
    pub file_bytes: Option<u64>,
    /// Seconds of processor time that a process may take in its life.
    pub cpu_seconds: Option<u64>,
}

impl Limits {
    /// The limits where none are configured:
    ///
    /// - 4 GiB of memory: what a large server of MCP in node or Python takes is below one
    /// - 4096 open files: four times what most systems have as a default
    /// - 512 processes for a user that is not ours, as a browser with its threads needs; 8192 where the program has our
    ///   user, because the kernel counts our own threads and those of the desktop
    /// - 1 GiB for a file: more than what installers of packages write
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

    /// Limits this process and what it becomes. No dump of its memory is written, because that may hold its keys.
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

/// Sets a limit, unless there is a lower one already, which only root might raise.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let limit = limit.min(hard);
    Ok(setrlimit(resource, limit, limit)?)
}
