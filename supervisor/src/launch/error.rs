//! Why a program was not started, in words for the operator.

use std::{io, path::PathBuf};

/// Why the launcher did not become the program.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launcher's arguments do not come from [`Launch::command`](super::Launch::command).
    #[error("the launcher was started without a policy and a program")]
    Arguments,
    /// The launcher cannot parse its policy, for example because another version wrote the policy.
    #[error("the launcher cannot read its policy: {0}")]
    Policy(#[from] serde_json::Error),
    /// The kernel refused a resource limit.
    #[error("cannot limit {what}: {source}")]
    Limit {
        /// The limited resource.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused the switch to the user.
    #[error(
        "cannot run as the user `{user}`: {source}. Only root, or a process with CAP_SETUID and CAP_SETGID, may start \
         programs as another user"
    )]
    User {
        /// The user's name.
        user: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused to drop rights.
    #[error("cannot give up its rights: {0}")]
    Rights(io::Error),
    /// A path of the policy cannot be opened.
    #[error("the path {} of `read` or `write` cannot be opened: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused the Landlock domain.
    #[error("Landlock refuses: {0}")]
    Landlock(#[from] landlock::RulesetError),
    /// The filter of system calls was refused.
    #[error("the kernel refuses a filter of system calls: {0}")]
    Filter(#[from] seccompiler::Error),
    /// The filter of system calls cannot be made.
    #[error("the filter of system calls cannot be made: {0}")]
    Rules(#[from] seccompiler::BackendError),
    /// The policy demands more of Landlock than the kernel has.
    #[error("the kernel lacks required features of Landlock, and `require_landlock` is set")]
    NoLandlock,
    /// The program cannot be run.
    #[error("cannot run `{program}`: {source}")]
    Exec {
        /// The program.
        program: String,
        /// The kernel's error.
        source: io::Error,
    },
}
