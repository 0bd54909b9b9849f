//! The answer to a tool call that waits for a person: from the terminal, or from the options.

use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::show;

/// Lines of the terminal: messages, and answers to questions.
pub(super) struct Input {
    pub(super) lines: Lines<BufReader<Stdin>>,
    /// `--approve`.
    pub(super) approves_all: bool,
}

impl Input {
    pub(super) fn new(approves_all: bool) -> Self {
        Self {
            lines: BufReader::new(tokio::io::stdin()).lines(),
            approves_all,
        }
    }

    /// The answer to an `approval_requested`, as the gateway takes it. Asks when there is someone to ask.
    pub(super) async fn decide(&mut self, requested: &Value) -> io::Result<Value> {
        let mut answer = if self.approves_all {
            json!({"decision": "approve"})
        } else if io::stdin().is_terminal() {
            self.ask(requested).await?
        } else {
            json!({"decision": "deny", "reason": "nobody was there to approve it"})
        };
        answer["input_hash"] = requested["input_hash"].clone();
        Ok(answer)
    }

    async fn ask(&mut self, requested: &Value) -> io::Result<Value> {
        // The arguments are not shortened: a person must see what they approve.
        let call = format!(
            "{} {}",
            requested["tool_name"].as_str().unwrap_or_default(),
            requested["tool_input"]
        );
        println!("\napprove {}", show::printable(&call));
        while let Some(line) = self
            .prompt("y(es), n(o), e(dit), a(lways in this conversation)> ")
            .await?
        {
            match line.trim() {
                "y" | "yes" => return Ok(json!({"decision": "approve"})),
                "n" | "no" => return Ok(json!({"decision": "deny"})),
                "a" | "always" => return Ok(json!({"decision": "approve", "remember": true})),
                "e" | "edit" => {
                    let line = self.prompt("arguments> ").await?.unwrap_or_default();
                    match serde_json::from_str::<Map<String, Value>>(&line) {
                        Ok(input) => {
                            return Ok(json!({"decision": "approve", "tool_input": input}));
                        }
                        Err(error) => println!("that is not a JSON object: {error}"),
                    }
                }
                _ => {}
            }
        }
        Ok(json!({"decision": "deny", "reason": "the terminal was closed"}))
    }

    async fn prompt(&mut self, text: &str) -> io::Result<Option<String>> {
        print!("{text}");
        io::stdout().flush()?;
        self.lines.next_line().await
    }
}
