//! A Redis of the test's own, on a free port, that never outlives the test.

#![allow(dead_code, unreachable_pub)] // each test binary uses a part

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

/// Kills the server when standard input closes: when the test drops it, ends or is killed. Nothing is stored, so
/// there is nothing to end well.
const SUPERVISE: &str = r#"
trap : TERM
exec 3<&0
"$@" </dev/null &
server=$!
( trap - TERM; cat <&3 >/dev/null; kill -KILL $server ) &
while kill -0 $server 2>/dev/null; do wait $server; done
kill -TERM 0
"#;

/// A running server. Dropping it kills it.
pub struct RedisServer {
    pub port: u16,
    child: Child,
    leash: Option<ChildStdin>,
}

impl RedisServer {
    /// Starts a server on a free port.
    pub fn start() -> Self {
        // A port that was free may be taken a moment later.
        (0..5)
            .find_map(|_| Self::start_on(free_port()))
            .expect("redis-server does not start")
    }

    fn start_on(port: u16) -> Option<Self> {
        assert!(
            is_installed(),
            "cannot find the `redis-server` binary (Redis 7). Run `make deps` to install it"
        );
        let mut command = Command::new("sh");
        command.args([
            "-c",
            SUPERVISE,
            "sh",
            "redis-server",
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ]);
        command.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--enable-debug-command",
            "local",
            "--dir",
            "/tmp",
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = command
            .spawn()
            .expect("cannot start a shell for redis-server");
        let leash = child.stdin.take();
        let mut server = Self { port, child, leash };
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if server
                .try_command("PING")
                .is_some_and(|answer| answer == "+PONG")
            {
                return Some(server);
            }
            if !matches!(server.child.try_wait(), Ok(None)) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server and waits until it is gone.
    pub fn kill(&mut self) {
        self.leash = None;
        self.child
            .wait()
            .expect("the shell of redis-server cannot be waited for");
    }

    /// Starts it again, empty, on the same port.
    pub fn restart(&mut self) {
        self.kill();
        *self = Self::start_on(self.port).expect("redis-server does not start again");
    }

    /// Runs a command over a connection of its own; the answer's first line, or the text of a longer one.
    pub fn command(&self, command: &str) -> String {
        self.try_command(command)
            .expect("redis-server does not answer")
    }

    fn try_command(&self, command: &str) -> Option<String> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        connection
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        connection
            .write_all(format!("{command}\r\n").as_bytes())
            .ok()?;
        let mut answer = BufReader::new(connection);
        let mut line = String::new();
        answer.read_line(&mut line).ok()?;
        let line = line.trim_end().to_owned();
        let Some(length) = line.strip_prefix('$') else {
            return Some(line);
        };
        let mut text = vec![0; length.parse().ok()?];
        answer.read_exact(&mut text).ok()?;
        String::from_utf8(text).ok()
    }

    /// A number from INFO.
    pub fn info(&self, name: &str) -> u64 {
        let info = self.command("INFO everything");
        let value = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or_else(|| panic!("INFO has no number {name}"))
    }

    /// Keys held now, those that have expired removed.
    pub fn keys(&self) -> u64 {
        self.command("DBSIZE")
            .trim_start_matches(':')
            .parse()
            .expect("DBSIZE answers a number")
    }

    /// Stops the server from doing anything, its connections open, until what is returned is dropped.
    pub fn freeze(&self) -> Frozen {
        let pid = self.info("process_id");
        signal("-STOP", pid);
        Frozen { pid }
    }
}

/// A server that does nothing.
pub struct Frozen {
    pid: u64,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", self.pid);
    }
}

fn signal(signal: &str, pid: u64) {
    assert!(
        Command::new("kill")
            .args([signal, &pid.to_string()])
            .status()
            .expect("kill")
            .success()
    );
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.leash = None;
        let _ = self.child.wait();
    }
}

fn is_installed() -> bool {
    let is_found = |path| {
        std::env::split_paths(&path).any(|directory| directory.join("redis-server").is_file())
    };
    std::env::var_os("PATH").is_some_and(is_found)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("no free port");
    listener
        .local_addr()
        .expect("a bound listener has an address")
        .port()
}
