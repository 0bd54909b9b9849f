//! Places where a test can stop the process, to kill it at exactly that instant.
//!
//! `EVERTURN_FAILPOINT=<name>=<file>`: the first to reach `name` creates `file` and waits there until `<file>.go`
//! exists (or it is killed); when the file exists already the place is passed, so that the next worker finishes the
//! turn. In release builds a failpoint is nothing.

use std::{path::Path, time::Duration};

/// Stops here when the environment asks for it (debug builds only).
pub async fn reach(name: &str) {
    if cfg!(debug_assertions)
        && let Some(file) = requested(name)
        && std::fs::OpenOptions::new().write(true).create_new(true).open(&file).is_ok()
    {
        tracing::warn!(name, file, "stopped at a failpoint");
        let go = format!("{file}.go");
        while !Path::new(&go).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn requested(name: &str) -> Option<String> {
    let wanted = std::env::var("EVERTURN_FAILPOINT").ok()?;
    let (wanted_name, file) = wanted.split_once('=')?;
    (wanted_name == name).then(|| file.to_owned())
}
