//! A server as a child process that never outlives its parent, not even when the parent is killed with kill -9.
//!
//! A shell holds the server. It stops the server when its standard input closes: when the parent closes it, exits or is
//! killed. In a process group of its own, a Ctrl-C in the terminal reaches only the parent, which stops things in order.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    time::Duration,
};

/// `$1` is the signal that stops the server, `$2` a directory to remove when the parent has let go (or empty).
/// Each line on standard input is a signal for the server; a pause is for its children, too. What does not stop within
/// 10 s is killed. A hangup is ignored: the kernel sends one to the whole group when the parent dies while the server is
/// paused.
const SUPERVISE: &str = r#"
stop=$1 scratch=$2; shift 2
released=
trap '' HUP
trap : TERM
trap released=1 USR1
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
children() { cat "/proc/$server/task/$server/children"; }
(
    trap - TERM
    while read -r signal <&3; do
        kill "-$signal" $server
        case $signal in STOP|CONT) kill "-$signal" $(children) ;; esac
    done
    kill -USR1 $$
    kill "-$stop" $server
    kill -CONT $server $(children)
    sleep 10
    kill -KILL $server $(children)
) 2>/dev/null &
exec 3<&-
while kill -0 $server 2>/dev/null; do wait $server; ended=$?; done
kill -TERM 0
if [ -n "$released" ] && [ -n "$scratch" ]; then cd /; rm -rf "$scratch"; fi
exit $ended
"#;

/// Longer than the shell's patience, after which the server is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Between two looks at whether the server has ended. Polled, so that a leash may be used from another runtime than
/// the one that made it, as the servers are that many tests share.
const POLL: Duration = Duration::from_millis(20);

/// What a server may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT; PostgreSQL's fast shutdown.
    Interrupt,
    /// SIGQUIT; PostgreSQL's immediate shutdown, as after a crash.
    Quit,
    /// SIGKILL.
    Kill,
    /// SIGSTOP, to the server and its children.
    Pause,
    /// SIGCONT, to the server and its children.
    Resume,
}

/// A running server. Dropping this stops it, without waiting until it is gone.
#[derive(Debug)]
pub struct Leash {
    shell: Child,
    /// While this is open, the server runs.
    reins: Option<ChildStdin>,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "TERM",
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
            Self::Pause => "STOP",
            Self::Resume => "CONT",
        }
    }
}

impl Leash {
    /// A command for a program on a leash, to which its arguments and output files are added. `stop` is what stops it;
    /// `scratch` is removed once the parent has let go and the server is gone.
    pub fn command(program: &Path, stop: Signal, scratch: Option<&Path>) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SUPERVISE, "sh", stop.name()])
            .arg(scratch.unwrap_or(Path::new("")))
            .arg(program);
        command
    }

    /// Starts what [`Leash::command`] began; it is not ready yet.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut shell = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        let reins = shell.stdin.take();
        Ok(Self { shell, reins })
    }

    /// Sends a signal. Returns before the server has noticed.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match &mut self.reins {
            Some(reins) => writeln!(reins, "{}", signal.name()),
            None => Ok(()),
        }
    }

    /// True until the server has ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }

    /// Waits for the server to end by itself, or by a signal.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.shell.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(mut self) {
        drop(self.reins.take());
        if tokio::time::timeout(STOP_TIMEOUT, self.ended())
            .await
            .is_err()
        {
            tracing::warn!("a server does not end, although killed");
        }
    }
}
