//! The Landlock domain of a program: its files and ports. In a domain, a program reaches only its own child processes.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, PathFdError, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::{
    error::LaunchError,
    policy::{Access, Policy},
};

/// The newest version of Landlock in use here. Older kernels enforce a part of its rights.
const NEWEST: ABI = ABI::V6;

/// Files that a program may always read, where `read` is set: libraries and interpreters need these files to start.
/// Most of /etc is missing, because /etc may have keys.
const SYSTEM_FILES: [&str; 34] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
];

/// Devices that a program may always write to, where `write` is set.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// The share of a policy's access rules that the running kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// The kernel enforces every rule.
    Full,
    /// The kernel enforces a part, because its Landlock is older.
    Partial,
    /// The kernel enforces no rule: Landlock is missing or switched off.
    Nothing,
}

/// A domain for this process to enter. The paths are open already.
pub(super) struct Domain {
    ruleset: RulesetCreated,
    is_required: bool,
}

impl Domain {
    pub(super) fn of(policy: &Policy) -> Result<Self, LaunchError> {
        let access = &policy.access;
        let mut files = handled(access);
        // A domain that limits neither files nor ports still keeps the program from other processes.
        let ruleset = match created(access, files, CompatLevel::HardRequirement) {
            Ok(ruleset) => ruleset.set_compatibility(CompatLevel::BestEffort),
            Err(_) if policy.requires_landlock => return Err(LaunchError::NoLandlock),
            Err(_) => {
                if files.is_empty() {
                    // An old kernel refuses a domain without rights to files. The right to make block devices costs the
                    // program no ability, because no child could make a block device anyway.
                    files = AccessFs::MakeBlock | AccessFs::Refer;
                }
                created(access, files, CompatLevel::BestEffort)?
            }
        };
        Ok(Self {
            ruleset: with_rules(ruleset, access, files)?,
            is_required: policy.requires_landlock,
        })
    }

    /// Enters the domain, irrevocably.
    pub(super) fn enter(self) -> Result<(), LaunchError> {
        let status = self.ruleset.restrict_self()?;
        if self.is_required && status.ruleset != RulesetStatus::FullyEnforced {
            return Err(LaunchError::NoLandlock);
        }
        Ok(())
    }
}

impl Policy {
    /// Returns the share of the policy's access rules that the running kernel enforces.
    pub fn enforcement(&self) -> Enforcement {
        let access = &self.access;
        if created(access, handled(access), CompatLevel::HardRequirement).is_ok() {
            return Enforcement::Full;
        }
        let oldest = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::MakeBlock)
            .and_then(Ruleset::create);
        if oldest.is_ok() {
            Enforcement::Partial
        } else {
            Enforcement::Nothing
        }
    }
}

/// Returns a ruleset without rules. The ruleset denies the rights in `files`, and every handled right to ports and
/// processes.
fn created(
    access: &Access,
    files: BitFlags<AccessFs>,
    level: CompatLevel,
) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(level)
        .scope(Scope::from_all(NEWEST))?;
    if !files.is_empty() {
        ruleset = ruleset.handle_access(files)?;
    }
    if access.connect_ports.is_some() || !access.closed_ports.is_empty() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    ruleset.create()
}

/// Returns the rights to files that the domain denies unless a rule grants them.
fn handled(access: &Access) -> BitFlags<AccessFs> {
    let mut files = BitFlags::empty();
    if access.read.is_some() {
        files |= AccessFs::from_read(NEWEST) | AccessFs::Refer;
    }
    if access.write.is_some() {
        files |= AccessFs::from_write(NEWEST);
    }
    files
}

fn with_rules(
    mut ruleset: RulesetCreated,
    access: &Access,
    files: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LaunchError> {
    // A rule can grant only rights that the domain handles. Reading is free if only `write` is set.
    let all = AccessFs::from_all(NEWEST) & files;
    let reading = AccessFs::from_read(NEWEST) & files;
    if access.write.is_none() && !files.is_empty() {
        // docs/libraries.md, landlock and rustix: any domain that handles files denies moves
        ruleset = ruleset.add_rules(path_beneath_rules(["/"], AccessFs::Refer))?;
    }
    if access.read.is_some() {
        ruleset = ruleset.add_rules(path_beneath_rules(SYSTEM_FILES, reading))?;
    }
    if access.write.is_some() {
        let writing = AccessFs::WriteFile | AccessFs::ReadFile | AccessFs::Truncate;
        ruleset = ruleset.add_rules(path_beneath_rules(DEVICES, writing & files))?;
    }
    for path in access.read.iter().flatten() {
        ruleset = ruleset.add_rule(beneath(path, reading)?)?;
    }
    for path in access.write.iter().flatten() {
        ruleset = ruleset.add_rule(beneath(path, all)?)?;
    }
    let open = |port| Ok::<_, RulesetError>(NetPort::new(port, AccessNet::ConnectTcp));
    match &access.connect_ports {
        Some(ports) => ruleset.add_rules(ports.iter().copied().map(open)),
        None if access.closed_ports.is_empty() => Ok(ruleset),
        // Landlock has no rule that denies a port, so every other port gets a rule.
        None => {
            let is_open = |port: &u16| !access.closed_ports.contains(port);
            ruleset.add_rules((1..=u16::MAX).filter(is_open).map(open))
        }
    }
    .map_err(LaunchError::from)
}

/// Returns the rule for a path of the operator's policy. The path must exist. A file gets only the rights with a
/// meaning for files.
fn beneath(path: &Path, access: BitFlags<AccessFs>) -> Result<PathBeneath<PathFd>, LaunchError> {
    let opened = PathFd::new(path).map_err(|error| LaunchError::Path {
        path: path.to_owned(),
        source: match error {
            PathFdError::OpenCall { source, .. } => source,
            other => std::io::Error::other(other),
        },
    })?;
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(NEWEST)
    };
    Ok(PathBeneath::new(opened, access))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_rules_makes_a_domain() {
        let paths = [None, Some(vec!["/tmp".into(), "/etc/passwd".into()])];
        for read in &paths {
            for write in &paths {
                let ports = [
                    (None, vec![]),
                    (None, vec![7233, 5432]),
                    (Some(vec![]), vec![7233]),
                    (Some(vec![443]), vec![]),
                ];
                for (connect_ports, closed_ports) in ports {
                    let access = Access {
                        read: read.clone(),
                        write: write.clone(),
                        connect_ports,
                        closed_ports,
                    };
                    let policy = Policy {
                        access,
                        ..Policy::default()
                    };
                    let made = Domain::of(&policy);
                    assert!(made.is_ok(), "{policy:?}: {:?}", made.err());
                }
            }
        }
    }

    #[test]
    fn a_path_that_does_not_exist_is_named() {
        let policy = Policy {
            access: Access {
                write: Some(vec!["/no/such/folder".into()]),
                ..Access::default()
            },
            ..Policy::default()
        };
        if policy.enforcement() == Enforcement::Nothing {
            return;
        }
        let error = Domain::of(&policy).err().unwrap().to_string();
        assert!(error.contains("/no/such/folder"), "{error}");
    }
}
