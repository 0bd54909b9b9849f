//! Why a program was not started, in words for the operator.

use std::{io, path::PathBuf};

/// Why the launcher did not become the program.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The arguments of the launcher are not those that [`Launch::command`](super::Launch::command) writes.
    #[error("the launcher was started without a policy and a program")]
    Arguments,
    /// The policy is not one of this version.
    #[error("the launcher cannot read its policy: {0}")]
    Policy(#[from] serde_json::Error),
    /// A limit was refused.
    #[error("cannot limit {what}: {source}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// The user was refused.
    #[error(
        "cannot run as the user `{user}`: {source}. Only root, or a process with CAP_SETUID and CAP_SETGID, may start \
         programs as another user"
    )]
    User {
        /// Its name.
        user: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// Rights could not be given up.
    #[error("cannot give up its rights: {0}")]
    Rights(io::Error),
    /// A path of the policy cannot be opened.
    #[error("the path {} of `read` or `write` cannot be opened: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// The Landlock domain was refused.
    #[error("Landlock refuses: {0}")]
    Landlock(#[from] landlock::RulesetError),
    /// The policy demands what the kernel does not have.
    #[error(
        "the kernel does not have all of Landlock that is needed, and `require_landlock` is set"
    )]
    NoLandlock,
    /// The program cannot be run.
    #[error("cannot run `{program}`: {source}")]
    Exec {
        /// The program.
        program: String,
        /// What the kernel says.
        source: io::Error,
    },
}
