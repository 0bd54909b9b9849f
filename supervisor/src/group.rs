//! A group of processes that ends with this process.

use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use crate::launch::inherited;

const WATCHER: &str = include_str!("watcher.sh");

/// The pause between two checks whether a process has ended. It is polled, so that any tokio runtime can wait for it:
/// tests share servers, and each test has a runtime of its own.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long the watcher may take beyond the grace period of its program.
const WATCHER_TIMEOUT: Duration = Duration::from_secs(5);

/// How a group ends: when [`ProcessGroup::end`] is called, when it is dropped, and when this process is gone.
#[derive(Debug, Clone)]
pub struct GroupEnd {
    /// The signal that the group's [`Program`](crate::Program) is sent first.
    pub signal: Signal,
    /// How long the program may take to end after that. Then everything in the group is killed. Rounded down to tenths
    /// of a second.
    pub grace: Duration,
    /// A directory that is removed when no program uses it any more.
    pub scratch: Option<PathBuf>,
}

impl GroupEnd {
    /// Everything is killed at once.
    pub const KILL: Self = Self {
        signal: Signal::SIGKILL,
        grace: Duration::ZERO,
        scratch: None,
    };
}

/// A process group that processes can be started in. Dropping it ends it in the background. A process that leaves the
/// group (by setsid) goes on.
///
/// The group is led by a process that watches this one, so it exists before the first program starts: there is no
/// moment at which a program runs unwatched.
#[derive(Debug)]
pub struct ProcessGroup {
    /// `None` once it has been waited for.
    watcher: Option<Child>,
    /// The group runs for as long as this is open.
    alive: Option<ChildStdin>,
    leader: Pid,
    grace: Duration,
}

impl ProcessGroup {
    /// Starts a new group, with nothing in it but its watcher.
    pub fn start(end: &GroupEnd) -> io::Result<Self> {
        let mut watcher = Command::new("/bin/sh")
            .args(["-c", WATCHER, "everturn-watcher", signal_name(end.signal)])
            .arg((end.grace.as_millis() / 100).to_string())
            .arg(end.scratch.as_deref().unwrap_or("".as_ref()))
            // A program that has our user may be able to read the watcher's environment, so no key may be in it.
            .env_clear()
            .envs(inherited(&["PATH"]))
            // The watcher could not remove the scratch directory if it were its own working directory.
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let leader = i32::try_from(watcher.id()).map_err(io::Error::other)?;
        let alive = watcher.stdin.take();
        let ready = watcher.stdout.take();
        let group = Self {
            watcher: Some(watcher),
            alive,
            leader: Pid::from_raw(leader),
            grace: end.grace,
        };
        // A signal to the group must not end the watcher. It writes a byte when it is ready for them.
        let mut line = [0; 1];
        ready
            .ok_or(io::ErrorKind::BrokenPipe)?
            .read_exact(&mut line)?;
        Ok(group)
    }

    /// The id of the group. Give it to `Command::process_group` of what is to run in it.
    pub fn id(&self) -> i32 {
        self.leader.as_raw()
    }

    /// Sends a signal to every process of the group. The watcher gets it too and ignores it. SIGKILL and SIGSTOP cannot
    /// be ignored, so they are refused: use [`ProcessGroup::end`] or [`Program::pause`](crate::Program::pause).
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.alive.is_none() || matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(killpg(self.leader, signal)?)
    }

    /// Ends the group, and waits until that is done.
    pub async fn end(&mut self) {
        self.let_go();
        let polls = (self.grace + WATCHER_TIMEOUT).as_millis() / POLL_INTERVAL.as_millis();
        for _ in 0..polls {
            if self.has_ended() {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        tracing::warn!(
            group = self.id(),
            "a process group does not end, although killed"
        );
    }

    /// Tells the watcher which program is to be stopped when the group ends; `None` when it has ended.
    pub(crate) fn watch(&mut self, program: Option<u32>) -> io::Result<()> {
        let alive = self.alive.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let line = program.map_or_else(String::new, |id| id.to_string());
        alive.write_all(format!("{line}\n").as_bytes())
    }

    /// Closes the watcher's input, so that it ends the group.
    pub(crate) fn let_go(&mut self) {
        self.alive = None;
    }

    fn has_ended(&mut self) -> bool {
        if let Some(watcher) = &mut self.watcher
            && matches!(watcher.try_wait(), Ok(None))
        {
            return false;
        }
        self.watcher = None;
        true
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.let_go();
        if let Some(watcher) = self.watcher.take() {
            wait_in_background(watcher);
        }
    }
}

/// Waits for a process that is about to end, so that it does not stay a zombie.
pub(crate) fn wait_in_background(mut child: Child) {
    let wait = move || child.wait();
    // When no thread can be started, the zombie stays until this process ends.
    let _best_effort = thread::Builder::new().name("reaper".to_owned()).spawn(wait);
}

/// The name of a signal as the shell's `kill` takes it.
fn signal_name(signal: Signal) -> &'static str {
    signal.as_str().trim_start_matches("SIG")
}
