//! How a program of an operator's configuration is started, so that it gets less than this process has.
//!
//! - [`Policy`]: what a program may do: as which user it runs, its limits, files and ports
//! - [`Launch`]: makes the command that starts a program under a policy
//! - [`launched`]: what the new process does before it becomes the program
//!
//! The program of this process starts itself a second time, as a launcher (`launcher`). The launcher has the child's
//! environment, limits itself (`limits`), gives up its rights (`privileges`), enters a Landlock domain (`domain`) and
//! then becomes the program by exec. So nothing runs between fork and exec, where only few functions are safe, and
//! whatever the launcher does is done in a process that has no secret yet.
//!
//! Must not be here: which programs there are, and what they may do.

mod domain;
mod error;
mod launcher;
mod limits;
mod policy;
mod privileges;
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

/// Variables of this process that a program needs to run, and that hold no keys.
pub const COMMON_VARIABLES: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TERM", "TMPDIR",
];

/// The PATH of programs when this process has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The file of this process's program. It leads there also when the file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How programs are started: under a policy, or only with an environment of their own.
#[derive(Debug, Clone)]
pub struct Launch {
    policy: Option<Box<Policy>>,
}

impl Launch {
    /// Starts programs with all rights of this process. For a process whose program has no launcher: a test, or a
    /// binary that does not call [`launched`] first.
    pub const fn unconfined() -> Self {
        Self { policy: None }
    }

    /// Starts programs under a policy. The program of this process must call [`launched`] before anything else.
    pub fn confined(policy: Policy) -> Self {
        Self {
            policy: Some(Box::new(policy)),
        }
    }

    /// The policy, where there is one.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_deref()
    }

    /// Makes the command that starts a program. Of this process's environment it has the variables that are named, and
    /// PATH in any case. Arguments, more variables, pipes and the process group are the caller's.
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

/// The variables of this process that are among these.
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
