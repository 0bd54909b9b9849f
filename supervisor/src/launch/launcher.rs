//! The launcher: what a process does between its start and becoming the program.

use std::{
    convert::Infallible,
    env,
    ffi::OsString,
    fs, io,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use super::{domain::Domain, error::LaunchError, policy::Policy, privileges};

/// The first argument of a launcher.
pub(super) const WORD: &str = "--launch-as-child";
/// How a line on standard error begins that says why a program was not started.
pub const FAILED_PREFIX: &str = "everturn-launcher: ";
/// The exit codes of shells for a program that was not found, and one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
/// How much more the kernel likes to end this process than others when memory is short: half of the scale, so that it is
/// a program and not its worker.
const OUT_OF_MEMORY_SCORE: &str = "500";

/// Becomes the program, when this process was started to do so. Returns `None` when it was not, and an exit code when
/// the program cannot be run; standard error then says why. Call it before anything else: the process has no secrets yet.
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

/// Why a program was not started, when its end says so: its exit code and what is on its standard error.
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
    // The paths are opened with the rights of the worker: the user may not be let into a folder above them.
    let domain = Domain::of(&policy)?;
    // Best effort: without /proc, the kernel chooses as it would.
    let _written = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    policy.limits.apply()?;
    privileges::give_up(policy.user.as_ref())?;
    domain.enter()?;
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
