//! A group of processes, which ends together with its parent process.

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

/// The pause between two checks for the end of a process. Polling works in any tokio runtime: tests share servers, and
/// every test has its own runtime.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The watcher's extra time after the grace period of its program.
const WATCHER_TIMEOUT: Duration = Duration::from_secs(5);

/// How a group ends: after a call of [`ProcessGroup::end`], after a drop, or after the end of this process.
#[derive(Debug, Clone)]
pub struct GroupEnd {
    /// The first signal to the group's [`Program`](crate::Program).
    pub signal: Signal,
    /// The program's time to end after the signal, rounded down to tenths of a second. Afterwards the watcher kills the
    /// whole group.
    pub grace: Duration,
    /// A directory to remove after the last program has ended.
    pub scratch: Option<PathBuf>,
}

impl GroupEnd {
    /// Kills the whole group at once.
    pub const KILL: Self = Self {
        signal: Signal::SIGKILL,
        grace: Duration::ZERO,
        scratch: None,
    };
}

/// A process group for programs. Dropping the group ends its processes in the background. A process that leaves the
/// group with setsid continues.
///
/// The group's leader is a watcher of this process. The group exists before the first program starts, therefore no
/// program ever runs unwatched.
#[derive(Debug)]
pub struct ProcessGroup {
    /// The leader of the group. `None` after its exit status was read.
    watcher: Option<Child>,
    /// The watcher's standard input. The group runs until this pipe closes.
    alive: Option<ChildStdin>,
    leader: Pid,
    grace: Duration,
}

impl ProcessGroup {
    /// Starts a new group that has only its watcher.
    pub fn start(end: &GroupEnd) -> io::Result<Self> {
        let mut watcher = Command::new("/bin/sh")
            .args(["-c", WATCHER, "everturn-watcher", signal_name(end.signal)])
            .arg((end.grace.as_millis() / 100).to_string())
            .arg(end.scratch.as_deref().unwrap_or("".as_ref()))
            // A program with our user may be able to read the watcher's environment, therefore the environment has no
            // keys.
            .env_clear()
            .envs(inherited(&["PATH"]))
            // The scratch directory cannot be the watcher's working directory, because the watcher removes the scratch
            // directory.
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
        // A signal to the group must not end the watcher. The watcher writes a byte after it has begun to ignore
        // signals.
        let mut line = [0; 1];
        ready
            .ok_or(io::ErrorKind::BrokenPipe)?
            .read_exact(&mut line)?;
        Ok(group)
    }

    /// Returns the group's id. `Command::process_group` takes this id to start a program in the group.
    pub fn id(&self) -> i32 {
        self.leader.as_raw()
    }

    /// Sends a signal to every process of the group. The watcher ignores the signal. No process can ignore SIGKILL and
    /// SIGSTOP, therefore both are refused: use [`ProcessGroup::end`] or [`Program::pause`](crate::Program::pause).
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.alive.is_none() || matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(killpg(self.leader, signal)?)
    }

    /// Ends the group, and waits for the end of its watcher.
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

    /// Tells the watcher the id of the running program, which the watcher stops at the group's end. `None` after the
    /// program has ended.
    pub(crate) fn watch(&mut self, program: Option<u32>) -> io::Result<()> {
        let alive = self.alive.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let line = program.map_or_else(String::new, |id| id.to_string());
        alive.write_all(format!("{line}\n").as_bytes())
    }

    /// Closes the watcher's input. The watcher then ends the group.
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

/// Waits in a thread for a process that is about to end. Without the wait, the process stays a zombie.
pub(crate) fn wait_in_background(mut child: Child) {
    let wait = move || child.wait();
    // If no thread can start, the zombie stays until this process ends.
    let _best_effort = thread::Builder::new().name("reaper".to_owned()).spawn(wait);
}

/// Returns a signal's name for the shell's `kill`.
fn signal_name(signal: Signal) -> &'static str {
    signal.as_str().trim_start_matches("SIG")
}
