//! Hides the secrets of this process's environment from other processes.
//!
//! - [`shut`] prevents other processes of the same user from reading this process
//! - [`forget_secrets`] removes secrets from the environment after the start has read them
//! - `block`: the kernel's copy of the environment
//!
//! Must not be here: the meaning of variables. The command line and the configuration read them.

mod block;

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use everturn_supervisor::launch::COMMON_VARIABLES;
use nix::sys::prctl;

use self::block::Block;

/// Variables that stay besides [`COMMON_VARIABLES`]. Libraries read them for every new connection or file, and
/// operators look at them in /proc.
const KEPT: [&str; 23] = [
    "ALL_PROXY",
    "COLUMNS",
    "EVERTURN_FAILPOINT",
    "EVERTURN_FAILPOINTS",
    "HOSTALIASES",
    "HOSTNAME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LINES",
    "LOCALDOMAIN",
    "NO_COLOR",
    "NO_PROXY",
    "PWD",
    "RES_OPTIONS",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "TZDIR",
];
/// Prefixes of variables that also stay: variables of the language, and of the desktop's folders.
const KEPT_FAMILIES: [&str; 2] = ["LC_", "XDG_"];

/// The kernel's copy of the environment, or the reason why the copy cannot be changed, until the secrets are removed.
static BLOCK: Mutex<Option<io::Result<Block>>> = Mutex::new(None);

/// Asks the kernel to deny the user's further processes any access to the memory, the environment and the files in /proc
/// of this process, and to write no memory dump after a crash. Root, and processes with `CAP_SYS_PTRACE`, keep access. If
/// the kernel refuses, `shut` prints an error, and the process continues unprotected. Call `shut` before everything else.
pub fn shut() {
    // In a shut process, the kernel allows no access to the environment, not even from the process itself.
    *lock() = Some(Block::open());
    if let Err(error) = prctl::set_dumpable(false) {
        eprintln!(
            "everturn: cannot protect the memory of this process from other processes of the user: {error}"
        );
    }
}

/// Overwrites every variable outside the kept names in the environment block, so that `/proc/<pid>/environ` and child
/// processes do not have the secrets. The settings in memory stay, and a kept proxy variable may contain a password. Call
/// the function after every setting is read. Logs a warning when the variables stay. A second call does nothing.
pub fn forget_secrets() {
    let Some(block) = lock().take() else { return };
    let cleared = block.and_then(|block| block.clear(|name| !is_kept(name)));
    if let Err(error) = cleared {
        tracing::warn!(%error, "secrets stay in the environment of the process; only root can read the environment");
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<io::Result<Block>>> {
    BLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_kept(name: &str) -> bool {
    COMMON_VARIABLES.contains(&name)
        || KEPT.contains(&name)
        || KEPT_FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_does_not_stay() {
        for name in [
            "OPENAI_API_KEY",
            "EVERTURN_DATABASE",
            "PGPASSWORD",
            "TEMPORAL_API_KEY",
            "X",
            "",
        ] {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["PATH", "LC_TIME", "HTTPS_PROXY", "SSL_CERT_FILE"] {
            assert!(is_kept(name), "{name}");
        }
    }
}
