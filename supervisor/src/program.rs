//! A long-running program without input, which gets a signal and time to end when its parent is gone.

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

/// A program in a process group of its own. A Ctrl-C in the terminal does not reach it, so this process decides in
/// which order programs end. Dropping it ends the group in the background.
#[derive(Debug)]
pub struct Program {
    group: ProcessGroup,
    /// The process that runs, or that has ended last.
    child: Option<Child>,
}

impl Program {
    /// Makes a group in which [`Program::start`] starts a program. `end` says how the group ends, also when this
    /// process is gone.
    pub fn new(end: &GroupEnd) -> io::Result<Self> {
        Ok(Self {
            group: ProcessGroup::start(end)?,
            child: None,
        })
    }

    /// Starts a command. A program that was started before must have ended. The scratch directory stays for the next
    /// one.
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

    /// Sends a signal to the program, and does not wait for what it does.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        Ok(kill(self.running_id()?, signal)?)
    }

    /// Pauses the program and its children (SIGSTOP) until [`Program::resume`]. Their files and connections stay open.
    pub fn pause(&mut self) -> io::Result<()> {
        self.signal_with_children(Signal::SIGSTOP)
    }

    /// Lets the program and its children go on after a pause.
    pub fn resume(&mut self) -> io::Result<()> {
        self.signal_with_children(Signal::SIGCONT)
    }

    /// True until the program has ended.
    pub fn is_running(&mut self) -> bool {
        self.child.is_some() && matches!(self.try_wait(), Ok(None))
    }

    /// Waits until the program has ended by itself, or by a signal.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Ends the group, and waits until that is done. Nothing can be started afterwards.
    pub async fn stop(&mut self) {
        self.group.let_go();
        // Asks for the child's status when it has ended, so that it does not stay a zombie.
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
            // Another process may soon have its id, so the watcher must forget it. When the group has ended, there is
            // no watcher.
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
            // A child that has ended meanwhile needs no signal.
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
