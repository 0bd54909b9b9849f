//! Logs: the entries on standard error, and their formats. Standard output is for the results of commands.

use std::{fmt, io::IsTerminal, panic};

use anyhow::Context;
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt::SubscriberBuilder, layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// The format of log entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of text for people.
    #[default]
    Text,
    /// A JSON object per line, for log collectors.
    Json,
}

impl LogFormat {
    /// Reads the value of `--log-format`.
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

/// Libraries whose entries never reach the log, whatever the filter is. The entries of rmcp repeat texts of servers, and
/// a text may be a key (docs/libraries.md, rmcp: its log holds what servers say). Our own entries report the important
/// parts of their errors.
const NEVER: [&str; 1] = ["rmcp"];

/// Returns false for the targets of [`NEVER`], which are the listed crates and all their modules.
fn may_be_logged(target: &str) -> bool {
    let library = target.split("::").next().unwrap_or(target);
    !NEVER.contains(&library)
}

/// Starts the log. From here on, the process writes the entries that pass the filter.
pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<()> {
    let parsed =
        EnvFilter::try_new(filter).with_context(|| format!("`{filter}` is not a log filter"))?;
    let allowed = filter_fn(|entry| may_be_logged(entry.target()));
    let log = SubscriberBuilder::default()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log
            .with_ansi(std::io::stderr().is_terminal())
            .finish()
            .with(allowed)
            .init(),
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_span_list(false);
            log.finish().with(allowed).init();
            // A panic becomes a JSON entry, too, because log collectors parse every line.
            panic::set_hook(Box::new(
                |panic| tracing::error!(%panic, "a thread panicked"),
            ));
        }
    }
    Ok(())
}

/// Logs why the process ends, in the format of the other entries.
pub fn report_failure(error: &anyhow::Error, format: LogFormat) {
    match format {
        LogFormat::Text => eprintln!("everturn: {error:#}"),
        LogFormat::Json => tracing::error!(error = format!("{error:#}"), "everturn has failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_repeat_what_they_are_sent_are_never_logged() {
        for target in ["rmcp", "rmcp::transport::worker"] {
            assert!(!may_be_logged(target), "{target}");
        }
        for target in ["everturn_worker", "rmcp_like", "temporalio_client", ""] {
            assert!(may_be_logged(target), "{target}");
        }
    }
}
