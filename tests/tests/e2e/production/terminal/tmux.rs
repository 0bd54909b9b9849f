//! A program in a real terminal: tmux draws what it writes, and says what is on the screen.

use std::{path::PathBuf, process::Output};

use everturn_tests::{stack::Stack, wait};
use tempfile::TempDir;
use tokio::process::Command;

/// A window with one program. It ends with this.
pub(super) struct Window {
    directory: TempDir,
}

impl Window {
    /// Starts `everturn chat` with these options against the stack's gateway, in a window of 80 columns and 24 rows. When it
    /// ends, its exit code is on the screen.
    pub(super) async fn chat(stack: &Stack, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let url = stack.url();
        let args = [&["chat", "--url", &url], args].concat();
        let everturn = stack.command(&args, environment);
        let everturn = everturn.as_std();
        let window = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let script = "\"$@\"; echo \"exit code $?\"; exec cat";
        let mut tmux = window.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
        ]);
        tmux.args(["--", "sh", "-c", script, "sh"]);
        // tmux gives its programs a TERM of its own.
        let own = environment.iter();
        tmux.arg("env")
            .args(own.map(|(name, value)| format!("{name}={value}")));
        tmux.arg(everturn.get_program()).args(everturn.get_args());
        tmux.current_dir(everturn.get_current_dir().unwrap());
        tmux.env_remove("NO_COLOR")
            .env_remove("VISUAL")
            .env_remove("EDITOR");
        for (name, value) in everturn.get_envs() {
            match value {
                Some(value) => tmux.env(name, value),
                None => tmux.env_remove(name),
            };
        }
        succeed(tmux).await;
        window
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("tmux")
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(self.socket()).args(args);
        tmux
    }

    async fn run(&self, args: &[&str]) -> String {
        let output = succeed(self.tmux(args)).await;
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is on the screen, without blanks at the ends of rows.
    pub(super) async fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"]).await
    }

    /// What is on the screen and what has scrolled away.
    pub(super) async fn all(&self) -> String {
        self.run(&["capture-pane", "-p", "-S", "-"]).await
    }

    /// What is on the screen, with the sequences that make colours.
    pub(super) async fn painted(&self) -> String {
        self.run(&["capture-pane", "-p", "-e"]).await
    }

    /// A format of tmux, like `#{pane_title}`.
    pub(super) async fn says(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format])
            .await
            .trim_end()
            .to_owned()
    }

    /// Types a text.
    pub(super) async fn types(&self, text: &str) {
        self.run(&["send-keys", "-l", "--", text]).await;
    }

    /// Presses a key by tmux's name of it: `Enter`, `C-c`, `Up`.
    pub(super) async fn press(&self, key: &str) {
        self.run(&["send-keys", key]).await;
    }

    /// Types a line, waits until it is on the screen, and ends it.
    pub(super) async fn line(&self, text: &str) {
        self.types(text).await;
        self.sees(&format!("> {text}")).await;
        self.press("Enter").await;
    }

    /// Pastes a text as a terminal does that marks what is pasted.
    pub(super) async fn paste(&self, text: &str) {
        self.run(&["set-buffer", "--", text]).await;
        self.run(&["paste-buffer", "-p"]).await;
    }

    pub(super) async fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows])
            .await;
    }

    /// Waits until the screen has a text, and returns the screen.
    pub(super) async fn sees(&self, text: &str) -> String {
        self.shows(&format!("`{text}`"), |screen| screen.contains(text))
            .await
    }

    /// Waits until the screen fulfils a condition, and returns it.
    pub(super) async fn shows(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let seen = std::sync::Mutex::new(String::new());
        let waiting = wait::until(what, || async {
            let screen = self.screen().await;
            seen.lock().unwrap().clone_from(&screen);
            is_so(&screen).then_some(screen)
        });
        let limit = std::time::Duration::from_mins(1);
        let screen = tokio::time::timeout(limit, waiting).await;
        screen
            .unwrap_or_else(|_| panic!("the screen never shows {what}:\n{}", seen.lock().unwrap()))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // The server of this socket, and with it the program.
        let _ended = std::process::Command::new("tmux")
            .arg("-S")
            .arg(self.socket())
            .arg("kill-server")
            .output();
    }
}

async fn succeed(mut tmux: Command) -> Output {
    let output = tmux
        .output()
        .await
        .expect("tmux is there: make deps installs it");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?}: {said}", tmux.as_std());
    output
}
