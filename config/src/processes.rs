//! `[processes]` and `[mcp.NAME.process]`: the limits of programs that are tools or MCP servers.

use std::path::PathBuf;

use everturn_supervisor::launch::{Access, Limits, Policy, User};
use serde::Deserialize;
use toml::Spanned;

use super::{
    checker::Checker,
    forms::{DAY, Number, SECOND, Time, Written},
};

/// No interpreter starts with less memory, and a higher number is no limit.
type MemoryBytes = Number<{ 16 << 20 }, { 16 << 40 }, u64>;
/// A program has three open files before it opens its first file.
type OpenFiles = Number<16, { 1 << 20 }, u64>;
/// Linux cannot count more processes.
type Processes = Number<1, { 1 << 22 }, u64>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProcessTable {
    user: Option<Spanned<String>>,
    read: Option<Vec<Spanned<PathBuf>>>,
    write: Option<Vec<Spanned<PathBuf>>>,
    connect_ports: Option<Vec<u16>>,
    max_memory_bytes: Option<Written<MemoryBytes>>,
    max_open_files: Option<Written<OpenFiles>>,
    max_processes: Option<Written<Processes>>,
    max_file_bytes: Option<Written<Number<0, { 1 << 50 }, u64>>>,
    max_cpu_time: Option<Written<Time<SECOND, { 31 * DAY }>>>,
    require_landlock: Option<bool>,
}

/// The checked values of a table. A key that the table does not set is `None`.
#[derive(Debug, Default, Clone)]
pub(super) struct ProcessRules {
    user: Option<User>,
    access: Access,
    limits: Limits,
    requires_landlock: Option<bool>,
}

impl ProcessTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> ProcessRules {
        let access = Access {
            read: self.read.as_deref().map(|paths| absolute(paths, check)),
            write: self.write.as_deref().map(|paths| absolute(paths, check)),
            connect_ports: self.connect_ports.clone(),
        };
        let limits = Limits {
            memory_bytes: check.value(&self.max_memory_bytes),
            open_files: check.value(&self.max_open_files),
            processes: check.value(&self.max_processes),
            file_bytes: check.value(&self.max_file_bytes),
            cpu_seconds: check.value(&self.max_cpu_time).map(|time| time.as_secs()),
        };
        ProcessRules {
            user: self.user.as_ref().and_then(|name| user(name, check)),
            access,
            limits,
            requires_landlock: self.require_landlock,
        }
    }
}

impl ProcessRules {
    /// Returns these rules, with `general`'s values for unset keys.
    pub(super) fn over(self, general: &Self) -> Self {
        let general = general.clone();
        Self {
            user: self.user.or(general.user),
            access: Access {
                read: self.access.read.or(general.access.read),
                write: self.access.write.or(general.access.write),
                connect_ports: self.access.connect_ports.or(general.access.connect_ports),
            },
            limits: limits_over(self.limits, general.limits),
            requires_landlock: self.requires_landlock.or(general.requires_landlock),
        }
    }

    /// Returns the policy of programs under these rules, with defaults for unset limits.
    pub(super) fn policy(self) -> Policy {
        let defaults = Limits::default_for(self.user.as_ref());
        Policy {
            limits: limits_over(self.limits, defaults),
            user: self.user,
            access: self.access,
            requires_landlock: self.requires_landlock.unwrap_or(false),
        }
    }
}

fn limits_over(own: Limits, general: Limits) -> Limits {
    Limits {
        memory_bytes: own.memory_bytes.or(general.memory_bytes),
        open_files: own.open_files.or(general.open_files),
        processes: own.processes.or(general.processes),
        file_bytes: own.file_bytes.or(general.file_bytes),
        cpu_seconds: own.cpu_seconds.or(general.cpu_seconds),
    }
}

/// Makes paths absolute. A relative path starts at the file's own folder, because the program may run in another
/// folder.
fn absolute(paths: &[Spanned<PathBuf>], check: &mut Checker<'_>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        match std::path::absolute(check.path_beside_file(path)) {
            Ok(path) => found.push(path),
            Err(error) => check.wrong(path, format!("this is no path: {error}")),
        }
    }
    found
}

/// Returns the user. The user must exist on the worker's machine, and the worker must have the right to start programs
/// as that user.
fn user(name: &Spanned<String>, check: &mut Checker<'_>) -> Option<User> {
    if !check.is_of_worker() {
        return None;
    }
    let text = name.get_ref();
    match User::find(text) {
        Ok(Some(user)) if user.uid == 0 => {
            check.wrong(name, "`user` cannot be root: root can take back what programs may not do");
        }
        Ok(Some(user)) if user.can_be_switched_to() => return Some(user),
        Ok(Some(_)) => check.wrong(
            name,
            format!(
                "programs cannot be started as `{text}`: only root, or a process with CAP_SETUID and CAP_SETGID, may \
                 do that (docs/operate/isolation.md)"
            ),
        ),
        Ok(None) => check.wrong(name, format!("user `{text}` does not exist on this machine")),
        Err(error) => check.wrong(name, format!("the user `{text}` cannot be looked up: {error}")),
    }
    None
}
