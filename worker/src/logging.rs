//! Logs: what is written to standard error, and how. Standard output is for what was asked for.

use std::{fmt, io::IsTerminal, panic};

use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt::SubscriberBuilder};

/// How a log entry is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line, for programs that collect logs.
    Json,
}

impl LogFormat {
    /// Reads the word of `--log-format`.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(
                "a log is written as `text` or as `json`; see --log-format and EVERTURN_LOG_FORMAT"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// genai logs what providers answer, and a provider may repeat a key in its words (docs/libraries.md, genai: its log holds
/// what providers say). So nothing of it is ever logged, whatever the filter says; what matters is in our own entries.
const NEVER: &str = "genai=off";

/// Writes the entries that pass the filter from here on.
pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<()> {
    let parsed = EnvFilter::try_new(filter)
        .with_context(|| format!("`{filter}` is not a log filter"))?
        .add_directive(NEVER.parse()?);
    let log = SubscriberBuilder::default()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => {
            log.json().flatten_event(true).with_span_list(false).init();
            // A panic is a JSON entry, too, for programs that read the log line by line.
            panic::set_hook(Box::new(
                |panic| tracing::error!(%panic, "a thread panicked"),
            ));
        }
    }
    Ok(())
}

/// Says why the process ends, in the form of the other entries.
pub fn report_failure(error: &anyhow::Error, format: LogFormat) {
    match format {
        LogFormat::Text => eprintln!("everturn: {error:#}"),
        LogFormat::Json => tracing::error!(error = format!("{error:#}"), "everturn has failed"),
    }
}
