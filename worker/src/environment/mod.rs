//! Keeps the secrets that this process was started with from other processes.
//!
//! - [`shut`] makes that no other process of the same user can look into this one
//! - [`forget_secrets`] takes the secrets out of the environment, once everything has been read
//! - `block`: the environment as the kernel keeps it
//!
//! Must not be here: which variables mean what. Those are read by the command line and the configuration.

mod block;

use std::sync::{Mutex, PoisonError};

use everturn_supervisor::launch::COMMON_VARIABLES;
use nix::sys::prctl;

use self::block::Block;

/// Variables that stay besides [`COMMON_VARIABLES`]. Libraries read them whenever they make a connection or a file, and
/// an operator looks at them in /proc.
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
/// How the names of families of variables begin that stay, too: of the language, and of the desktop's folders.
const KEPT_FAMILIES: [&str; 2] = ["LC_", "XDG_"];

/// The environment as it was at the start, until its secrets are forgotten.
static BLOCK: Mutex<Option<Block>> = Mutex::new(None);

/// Shuts this process: others of the same user can neither read its memory, its environment and its files in /proc nor
/// trace it, and it leaves no dump of its memory. Root still can. Call it first of all.
pub fn shut() {
    // The kernel lets nobody open the environment any more, and us neither, once the process is shut.
    match Block::open() {
        Ok(block) => *lock() = Some(block),
        Err(error) => tracing::debug!(%error, "the environment of this process cannot be opened"),
    }
    if let Err(error) = prctl::set_dumpable(false) {
        eprintln!("everturn: cannot shut this process against others of its user: {error}");
    }
}

/// Takes every variable out of the environment that is not known to hold no secret. After that neither this process nor
/// `/proc/<pid>/environ` has them, and no program that is started without an environment of its own inherits them. Call
/// it when everything has been read. Calling it again does nothing.
pub fn forget_secrets() {
    let Some(block) = lock().take() else { return };
    if let Err(error) = block.clear(|name| !is_kept(name)) {
        tracing::warn!(%error, "secrets stay in the environment of this process, which only root can read");
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Block>> {
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
