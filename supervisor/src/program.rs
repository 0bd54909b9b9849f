//! A long-running program without input, which is stopped in order when its parent is gone.

use std::{
    fs, io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::group::{GroupEnd, POLL_INTERVAL, ProcessGroup, wait_in_background};

/// A program in a process group of its own, so that a Ctrl-C in the terminal reaches only this process, which stops
/// things in order. Dropping it ends the group in the background.
#[derive(Debug)]
pub struct Program {
    group: ProcessGroup,
    /// The one that runs, or that has just ended.
    child: Option<Child>,
}

impl Program {
    /// A group in which [`Program::start`] starts something. `end` also tells what becomes of it when this process is
    /// gone.
    pub fn new(end: &GroupEnd) -> io::Result<Self> {
        Ok(Self {
            group: ProcessGroup::start(end)?,
            child: None,
        })
    }

    /// Starts a command; what ran before must have ended. The scratch directory stays from one to the next.
    pub fn start(&mut self, mut command: Command) -> io::Result<()> {
        if self.is_running() {
            return Err(io::Error::other("the last program still runs"));
        }
        let child = command
            .stdin(Stdio::null())
            .process_group(self.group.id())
            .spawn()?;
        let id = child.id();
        self.child = Some(child);
        self.group.watch(Some(id))
    }

    /// Sends it a signal. Returns before it has noticed.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        Ok(kill(self.running_id()?, signal)?)
    }

    /// Stops it and its children from doing anything, with everything open, until [`Program::resume`].
    pub fn pause(&mut self) -> io::Result<()> {
        self.signal_with_children(Signal::SIGSTOP)
    }

    /// Lets it and its children go on.
    pub fn resume(&mut self) -> io::Result<()> {
        self.signal_with_children(Signal::SIGCONT)
    }

    /// True until it has ended.
    pub fn is_running(&mut self) -> bool {
        self.child.is_some() && matches!(self.try_wait(), Ok(None))
    }

    /// Waits for it to end by itself, or by a signal.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Ends its group, and waits until that is done. Nothing can be started afterwards.
    pub async fn stop(&mut self) {
        self.group.let_go();
        // So that the watcher sees it end.
        self.wait_in_background();
        self.group.end().await;
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let child = self
            .child
            .as_mut()
            .ok_or_else(|| io::Error::other("no program was started"))?;
        let status = child.try_wait()?;
        if status.is_some() {
            // Its id may soon be another process's. The watcher is gone when the group has ended.
            let _none_to_stop = self.group.watch(None);
        }
        Ok(status)
    }

    fn running_id(&mut self) -> io::Result<Pid> {
        let is_running = self.is_running();
        let Some(child) = self.child.as_ref().filter(|_| is_running) else {
            return Err(io::Error::other("the program has ended"));
        };
        i32::try_from(child.id())
            .map(Pid::from_raw)
            .map_err(io::Error::other)
    }

    fn signal_with_children(&mut self, signal: Signal) -> io::Result<()> {
        let program = self.running_id()?;
        kill(program, signal)?;
        let children = fs::read_to_string(format!("/proc/{program}/task/{program}/children"))?;
        for child in children.split_whitespace() {
            // One that has ended meanwhile needs no signal.
            let _gone = child.parse().map(|id| kill(Pid::from_raw(id), signal));
        }
        Ok(())
    }

    fn wait_in_background(&mut self) {
        if let Some(child) = self.child.take() {
            wait_in_background(child);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.group.let_go();
        self.wait_in_background();
    }
}
