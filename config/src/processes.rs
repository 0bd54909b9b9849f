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
    unconfined: Option<Spanned<bool>>,
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
    /// True: the operator allows every file and every port except the ports of Everturn's own servers.
    is_unconfined: bool,
}

impl ProcessTable {
    /// The table of a server that another table names as unconfined.
    pub(super) fn of_unconfined(at: std::ops::Range<usize>) -> Self {
        Self {
            unconfined: Some(Spanned::new(at, true)),
            ..Self::default()
        }
    }

    /// Returns the rules of `[processes]`, which holds for all programs.
    pub(super) fn check_general(&self, check: &mut Checker<'_>) -> ProcessRules {
        if let Some(at) = &self.unconfined {
            check.wrong(
                at,
                "`unconfined` is for one server by its name: write it into [mcp.NAME.process]",
            );
        }
        self.check(check)
    }

    /// Returns the rules of one server.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> ProcessRules {
        let access = Access {
            read: self.read.as_deref().map(|paths| absolute(paths, check)),
            write: self.write.as_deref().map(|paths| absolute(paths, check)),
            connect_ports: self.connect_ports.clone(),
            closed_ports: Vec::new(),
        };
        let is_unconfined = self.unconfined.as_ref().is_some_and(|it| *it.get_ref());
        if let Some(at) = &self.unconfined
            && is_unconfined
            && access != Access::default()
        {
            check.wrong(
                at,
                "`unconfined = true` allows every file and every port: remove it, or remove `read`, `write` and \
                 `connect_ports`",
            );
        }
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
            is_unconfined,
        }
    }
}

impl ProcessRules {
    /// Returns these rules, with `general`'s values for unset keys.
    pub(super) fn over(self, general: &Self) -> Self {
        let general = general.clone();
        let of_all = if self.is_unconfined {
            Access::default()
        } else {
            general.access
        };
        Self {
            user: self.user.or(general.user),
            access: Access {
                read: self.access.read.or(of_all.read),
                write: self.access.write.or(of_all.write),
                connect_ports: self.access.connect_ports.or(of_all.connect_ports),
                closed_ports: Vec::new(),
            },
            limits: limits_over(self.limits, general.limits),
            requires_landlock: self.requires_landlock.or(general.requires_landlock),
            is_unconfined: self.is_unconfined,
        }
    }

    /// Returns what the operator must write before the server `name` may run, or `None`. A program that the rules forget
    /// could read every file of the worker and reach every server, so the rules name its files and ports.
    pub(super) fn lacks(&self, name: &str) -> Option<String> {
        if self.is_unconfined {
            return None;
        }
        let Access {
            read,
            write,
            connect_ports,
            ..
        } = &self.access;
        let keys = [
            ("`read = []` with the files it reads", read.is_none()),
            ("`write = []` with the files it changes", write.is_none()),
            (
                "`connect_ports = []` with the TCP ports it connects to",
                connect_ports.is_none(),
            ),
        ];
        let keys: Vec<_> = keys.iter().filter(|(_, lacks)| *lacks).collect();
        let keys: Vec<_> = keys.into_iter().map(|(key, _)| *key).collect();
        if keys.is_empty() {
            return None;
        }
        Some(format!(
            "a server with a `command` needs rights by name. Write into [mcp.{name}.process]: {}; or write \
             `unconfined = true`, and the program may do all that the worker's user may do \
             (docs/operate/isolation.md)",
            keys.join(", ")
        ))
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
