//! Code points at which a test can stop the process, to kill it at an exact moment. In release builds they do nothing.
//!
//! - `EVERTURN_FAILPOINT=<name>=<file>`: the first process at `name` creates `file` and waits until `<file>.go` exists
//!   (or a test kills the process). When the file exists already, the process goes on, so that the next worker finishes
//!   the turn.
//! - `EVERTURN_FAILPOINTS=<folder>`: every tool execution has its own failpoint, named in the file
//!   `<folder>/<conversation>`. Every tool execution at the failpoint creates
//!   `<folder>/<conversation>@<tool execution>` and waits until `<folder>/<conversation>.go` exists.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Stops here when the environment asks for it (debug builds only).
pub async fn reach(name: &str) {
    if cfg!(debug_assertions)
        && let Some(file) = requested(name)
        && std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&file)
            .is_ok()
    {
        stay(name, Path::new(&file), Path::new(&format!("{file}.go"))).await;
    }
}

/// Stops a tool execution here when the environment asks for it, for every tool execution or for this conversation's.
pub async fn reach_in(name: &str, conversation_id: &str, execution_id: &str) {
    reach(name).await;
    if cfg!(debug_assertions)
        && let Some(folder) = std::env::var_os("EVERTURN_FAILPOINTS").map(PathBuf::from)
        && std::fs::read_to_string(folder.join(conversation_id)).is_ok_and(|wanted| wanted == name)
    {
        let file = folder.join(format!("{conversation_id}@{execution_id}"));
        if std::fs::write(&file, "").is_ok() {
            stay(name, &file, &folder.join(format!("{conversation_id}.go"))).await;
        }
    }
}

async fn stay(name: &str, file: &Path, go: &Path) {
    tracing::warn!(name, file = %file.display(), "stopped at a failpoint");
    while !go.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn requested(name: &str) -> Option<String> {
    let wanted = std::env::var("EVERTURN_FAILPOINT").ok()?;
    let (wanted_name, file) = wanted.split_once('=')?;
    (wanted_name == name).then(|| file.to_owned())
}
