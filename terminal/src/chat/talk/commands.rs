//! Parses the user's lines. No I/O.

use everturn_client::OnBusy;

/// The command of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// A message, and how it is handled while a turn runs.
    Send(String, OnBusy),
    Stop,
    Retry,
    Help,
    Quit,
    /// The line is wrong. The field is the reason.
    Wrong(String),
}

/// The help text of the commands.
pub(super) const HELP: [&str; 10] = [
    "text            a message; during a running turn, the message waits for a new turn",
    "/steer text     joins the running turn before its next LLM call",
    "/interrupt text ends the running turn and begins a turn with the text",
    "/stop           ends the running turn, as Ctrl-C does; a second Ctrl-C leaves",
    "/retry          runs a failed turn again from its last checkpoint",
    "/quit           leaves, as Ctrl-D does; the turn goes on",
    "//text          a message that begins with /",
    "Alt-Enter       a new line in the message, as does Ctrl-J",
    "Up, Down        earlier lines",
    "Tab             goes between the line and a question",
];

/// Parses a line that is not blank.
pub(super) fn read(line: &str) -> Command {
    let Some(command) = line.strip_prefix('/') else {
        return Command::Send(line.to_owned(), OnBusy::Queue);
    };
    if command.starts_with('/') {
        return Command::Send(command.to_owned(), OnBusy::Queue);
    }
    let (name, text) = match command.split_once(char::is_whitespace) {
        Some((name, text)) => (name, text.trim()),
        None => (command, ""),
    };
    match (name, text) {
        ("steer" | "interrupt", "") => Command::Wrong(format!(
            "/{name} needs a text, as in `/{name} look at the tests, too`"
        )),
        ("steer", text) => Command::Send(text.to_owned(), OnBusy::Steer),
        ("interrupt", text) => Command::Send(text.to_owned(), OnBusy::Interrupt),
        ("stop", "") => Command::Stop,
        ("retry", "") => Command::Retry,
        ("help", "") => Command::Help,
        ("quit", "") => Command::Quit,
        _ => Command::Wrong(format!(
            "/{name} is not a command; /help lists the commands, and // begins a message with /"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_or_a_command() {
        let send = |text: &str, on_busy| Command::Send(text.to_owned(), on_busy);
        assert_eq!(read("hello /steer"), send("hello /steer", OnBusy::Queue));
        assert_eq!(read("//etc/passwd"), send("/etc/passwd", OnBusy::Queue));
        assert_eq!(
            read("/steer to the left"),
            send("to the left", OnBusy::Steer)
        );
        assert_eq!(read("/interrupt\nnow"), send("now", OnBusy::Interrupt));
        assert_eq!(read("/stop"), Command::Stop);
        assert_eq!(read("/retry"), Command::Retry);
        assert_eq!(read("/quit"), Command::Quit);
        for wrong in ["/steer ", "/etc/passwd", "/stop it", "/"] {
            assert!(matches!(read(wrong), Command::Wrong(_)), "{wrong}");
        }
    }
}
