//! How a program of an operator's configuration starts with fewer rights than this process.
//!
//! - [`Policy`]: a program's user, limits, files and ports
//! - [`Launch`]: makes the command for a program under a policy
//! - [`launched`]: the code of the new process before it becomes the program
//!
//! The binary of this process starts a second time, as a launcher (`launcher`). The launcher has the child's
//! environment, limits itself (`limits`), gives up its rights (`privileges`), enters a Landlock domain (`domain`), closes
//! the ways around it (`sockets`) and then becomes the program by exec. No code of ours runs between fork and exec, where only few functions are safe. The
//! launcher has no secrets.
//!
//! Must not be here: the list of programs, and their rights.

mod domain;
mod error;
mod launcher;
mod limits;
mod policy;
mod privileges;
mod sockets;
mod user;

use std::{
    ffi::{OsStr, OsString},
    io,
    process::Command,
};

pub use self::{
    domain::Enforcement,
    error::LaunchError,
    launcher::{FAILED_PREFIX, failure, launched},
    limits::Limits,
    policy::{Access, Policy},
    user::User,
};

/// Environment variables that programs need to run. These variables have no keys.
pub const COMMON_VARIABLES: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TERM", "TMPDIR",
];

/// The PATH of programs if this process has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The file of the running binary. The link stays valid after an update has replaced the file.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How programs start: under a policy, or only with their own environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    policy: Option<Box<Policy>>,
}

impl Launch {
    /// Starts programs with the full rights of this process. For a process without a launcher: a test, or a binary that
    /// does not call [`launched`] first.
    pub const fn unconfined() -> Self {
        Self { policy: None }
    }

    /// Starts programs under a policy. The binary of this process must call [`launched`] first.
    pub fn confined(policy: Policy) -> Self {
        Self {
            policy: Some(Box::new(policy)),
        }
    }

    /// Returns the policy; `None` if programs are unconfined.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_deref()
    }

    /// Returns this launch with closed ports: programs connect to them only where their policy opens the ports by name.
    #[must_use]
    pub fn closing(mut self, ports: &[u16]) -> Self {
        if let Some(policy) = &mut self.policy {
            policy.access.closed_ports = ports.to_vec();
        }
        self
    }

    /// Makes the command that starts a program. The command inherits the named environment variables, and always PATH.
    /// The caller adds arguments, more variables, pipes and the process group.
    pub fn command(&self, program: impl AsRef<OsStr>, variables: &[&str]) -> io::Result<Command> {
        let mut command = match &self.policy {
            None => Command::new(program),
            Some(policy) => {
                let mut launcher = Command::new(OWN_PROGRAM);
                launcher
                    .arg(launcher::WORD)
                    .arg(serde_json::to_string(policy)?)
                    .arg(program);
                launcher
            }
        };
        let path = || std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        command
            .env_clear()
            .envs(inherited(variables))
            .env("PATH", path());
        let user = self.policy.as_ref().and_then(|policy| policy.user.as_ref());
        if let Some(user) = user {
            user.set_variables(&mut command);
        }
        Ok(command)
    }
}

/// Returns the named environment variables of this process with their values.
pub fn inherited<'a>(variables: &'a [&'a str]) -> impl Iterator<Item = (&'a str, OsString)> {
    let value = |name: &&'a str| std::env::var_os(name).map(|value| (*name, value));
    variables.iter().filter_map(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn variables(command: &Command) -> Vec<(String, Option<String>)> {
        let text = |it: &OsStr| it.to_string_lossy().into_owned();
        let all = command.get_envs();
        all.map(|(name, value)| (text(name), value.map(text)))
            .collect()
    }

    #[test]
    fn a_command_has_only_the_variables_that_are_named() {
        let command = Launch::unconfined().command("x", &["HOME"]).unwrap();
        let names: Vec<_> = variables(&command)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert!(
            names
                .iter()
                .all(|name| ["HOME", "PATH"].contains(&name.as_str())),
            "{names:?}"
        );
        assert_eq!(command.get_program(), "x");
    }

    #[test]
    fn a_command_under_a_policy_is_that_of_the_launcher() {
        let policy = Policy {
            user: User::find("268435456").unwrap(),
            ..Policy::default()
        };
        let command = Launch::confined(policy.clone())
            .command("x", &["HOME", "USER"])
            .unwrap();
        let arguments: Vec<_> = command.get_args().map(|it| it.to_str().unwrap()).collect();
        assert_eq!((arguments[0], arguments[2]), (launcher::WORD, "x"));
        assert_eq!(
            serde_json::from_str::<Policy>(arguments[1]).unwrap(),
            policy
        );
        let variables = variables(&command);
        assert!(variables.contains(&("USER".to_owned(), Some("268435456".to_owned()))));
        // The home of the worker's user is not that of this one.
        assert!(
            !variables
                .iter()
                .any(|(name, value)| name == "HOME" && value.is_some())
        );
    }
}
