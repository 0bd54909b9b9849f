//! The version of this build.

use std::sync::LazyLock;

/// The version, with the commit if the build had `EVERTURN_COMMIT`.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("EVERTURN_COMMIT") {
        Some(commit) if !commit.is_empty() => format!("{version} ({commit})"),
        _ => version.to_owned(),
    }
});

/// Returns the version as `everturn --version` shows it: `0.1.0 (1a2b3c4d)`.
pub fn version() -> &'static str {
    &VERSION
}
