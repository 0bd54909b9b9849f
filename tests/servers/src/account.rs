//! Who runs the servers: never root, which PostgreSQL refuses.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

/// Accounts that a server may run as: PostgreSQL's own, which its package creates, or nobody's.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// An unprivileged account, to which a process of root's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account to change to; none when we are not root.
    pub(crate) fn unprivileged() -> anyhow::Result<Option<Self>> {
        // What we run as is who owns our own entry.
        if fs::metadata("/proc/self")
            .context("cannot read /proc/self")?
            .uid()
            != 0
        {
            return Ok(None);
        }
        let accounts = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let found = NAMES
            .iter()
            .find_map(|name| accounts.lines().find_map(|line| Self::parse(line, name)));
        found
            .context(
                "there is no account `postgres` or `nobody`, and PostgreSQL does not run as root",
            )
            .map(Some)
    }

    fn parse(line: &str, name: &str) -> Option<Self> {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { uid, gid })
    }
}

/// Makes a command run as the account.
pub(crate) fn run_as(command: &mut Command, account: Option<Account>) {
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
}

/// A new directory for a server, for whoever removes it.
pub(crate) fn scratch(name: &str, account: Option<Account>) -> anyhow::Result<PathBuf> {
    let directory = tempfile::Builder::new()
        .prefix(&format!("everturn-test-{name}-"))
        .tempdir()?
        .keep();
    hand_over(&directory, account)?;
    Ok(directory)
}

/// Creates a directory that stays, for a server.
pub(crate) fn lasting(directory: &Path, account: Option<Account>) -> anyhow::Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    hand_over(directory, account)
}

fn hand_over(directory: &Path, account: Option<Account>) -> anyhow::Result<()> {
    if let Some(Account { uid, gid }) = account {
        chown(directory, Some(uid), Some(gid)).with_context(|| {
            format!(
                "cannot give {} to the account that runs the server",
                directory.display()
            )
        })?;
    }
    let mut reach = Command::new("test");
    reach
        .arg("-w")
        .arg(directory)
        .current_dir("/")
        .stdin(Stdio::null());
    run_as(&mut reach, account);
    ensure!(
        reach.status().context("cannot run `test`")?.success(),
        "the account that runs the server cannot reach {}: choose a directory that every account may enter",
        directory.display()
    );
    Ok(())
}
