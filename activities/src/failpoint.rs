//! Places where a test can stop the process, to kill it at exactly that moment. In release builds they do nothing.
//!
//! - `EVERTURN_FAILPOINT=<name>=<file>`: the first to reach `name` creates `file` and waits there until `<file>.go`
//!   exists (or it is killed); when the file exists already the place is passed, so that the next worker finishes the
//!   turn.
//! - `EVERTURN_FAILPOINTS=<folder>`: every tool execution has a place of its own, the one named in the file
//!   `<folder>/<conversation>`. All that reach it create `<folder>/<conversation>@<tool execution>` and wait until
//!   `<folder>/<conversation>.go` exists.

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

/// Stops a tool execution here when the environment asks for it, for anyone or for those of this conversation.
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
