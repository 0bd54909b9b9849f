//! The launcher: the first part of a child process, which limits itself and then becomes the program.

use std::{
    convert::Infallible,
    env,
    ffi::OsString,
    fs, io,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use super::{
    domain::Domain, error::LaunchError, policy::Policy, privileges, sockets::SocketFilter,
};

/// The first argument of a launcher.
pub(super) const WORD: &str = "--launch-as-child";
/// The prefix of the launcher's line on standard error, which says why a program was not started.
pub const FAILED_PREFIX: &str = "everturn-launcher: ";
/// The shells' exit codes for a program that was not found, and for a program that cannot run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
/// The kernel's preference for ending this process when memory is short. Half of the scale: the kernel ends a program
/// before its worker.
const OUT_OF_MEMORY_SCORE: &str = "500";

/// Becomes the program, if this process was started as a launcher. Returns `None` in a process that is no launcher.
/// Returns an exit code if the program cannot run, with the reason on standard error. Call this function first in
/// `main`: the process has no secrets yet.
pub fn launched() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let Err(error) = launch(arguments);
    eprintln!("{FAILED_PREFIX}{error}");
    let is_missing = matches!(&error, LaunchError::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound);
    Some(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_RUN }))
}

/// Returns the reason why a program was not started, read from its exit code and its standard error.
pub fn failure(code: Option<i32>, stderr: &[u8]) -> Option<io::Error> {
    let kind = match u8::try_from(code?) {
        Ok(NOT_FOUND) => io::ErrorKind::NotFound,
        Ok(NOT_RUN) => io::ErrorKind::Other,
        _ => return None,
    };
    let text = String::from_utf8_lossy(stderr);
    let why = text.strip_prefix(FAILED_PREFIX)?.trim_end();
    Some(io::Error::new(kind, why.to_owned()))
}

fn launch(mut arguments: impl Iterator<Item = OsString>) -> Result<Infallible, LaunchError> {
    let (policy, program) = arguments
        .next()
        .zip(arguments.next())
        .ok_or(LaunchError::Arguments)?;
    let policy: Policy = serde_json::from_str(policy.to_str().ok_or(LaunchError::Arguments)?)?;
    // The launcher opens the paths with the worker's rights, because the program's user may lack access to a parent
    // folder.
    let domain = Domain::of(&policy)?;
    let sockets = SocketFilter::of(&policy)?;
    // Best effort: without /proc, the kernel keeps its default preference.
    let _written = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    policy.limits.apply()?;
    privileges::give_up(policy.user.as_ref())?;
    domain.enter()?;
    if let Some(sockets) = sockets {
        sockets.apply(&policy)?;
    }
    let source = Command::new(&program).args(arguments).exec();
    Err(LaunchError::Exec {
        program: program.to_string_lossy().into_owned(),
        source,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_a_launcher_that_failed_says_why() {
        let said = format!("{FAILED_PREFIX}cannot run `x`: gone\n");
        let of = |code, text: &str| failure(Some(code), text.as_bytes());
        let missing = of(127, &said).unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(missing.to_string(), "cannot run `x`: gone");
        assert_eq!(of(126, &said).unwrap().kind(), io::ErrorKind::Other);
        assert!(of(1, &said).is_none() && of(127, "sh: x: not found").is_none());
        assert!(failure(None, said.as_bytes()).is_none());
    }
}
