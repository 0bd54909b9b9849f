//! A long-running program without input. After the end of its parent, the program gets a signal and time to end.

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

/// A program in its own process group. A Ctrl-C in the terminal does not reach the group, because this process decides
/// the order in which programs end. Dropping a program ends its group in the background.
#[derive(Debug)]
pub struct Program {
    group: ProcessGroup,
    /// The running process, or the last process that has ended.
    child: Option<Child>,
}

impl Program {
    /// Makes the group for [`Program::start`]. `end` says how the group ends, also after the end of this process.
    pub fn new(end: &GroupEnd) -> io::Result<Self> {
        Ok(Self {
            group: ProcessGroup::start(end)?,
            child: None,
        })
    }

    /// Starts a command. The program before it must have ended. The scratch directory stays for the next program.
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

    /// Sends a signal to the program, and does not wait for the effect.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        Ok(kill(self.running_id()?, signal)?)
    }

    /// Pauses the program and its children (SIGSTOP) until [`Program::resume`]. Their files and connections stay open.
    pub fn pause(&mut self) -> io::Result<()> {
        self.signal_with_children(Signal::SIGSTOP)
    }

    /// Continues the program and its children after a pause.
    pub fn resume(&mut self) -> io::Result<()> {
        self.signal_with_children(Signal::SIGCONT)
    }

    /// Returns true until the program has ended.
    pub fn is_running(&mut self) -> bool {
        self.child.is_some() && matches!(self.try_wait(), Ok(None))
    }

    /// Waits for the end of the program, with or without a signal.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Ends the group, and waits for its end. No program can start in the group afterwards.
    pub async fn stop(&mut self) {
        self.group.let_go();
        // Reads the child's exit status after its end. Unread, the child stays a zombie.
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
            // The system may soon give this id to another process, therefore the watcher must forget the id. An ended
            // group has no watcher.
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
            // An ended child needs no signal.
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
