//! The command line: roles, their options and environment variables, and exit codes.
//!
//! - `serve`: the roles that run until a signal stops them: `dev`, `worker`, `gateway`, `all`
//! - `operate`: the commands that end by themselves: `codec`, `config`, `health`, `init`, `keys`, `replay`, `retention`
//! - `reads`: `audit` and `failures`, which print rows of the database
//! - `tools`
//!
//! The options of the commands that talk to a gateway (`chat`, `ls`, `tail`, `show`) are in `terminal/src/options.rs`.

mod operate;
mod reads;
mod serve;
mod tools;

use std::{env, path::PathBuf};

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use everturn_proto::words::TASK_QUEUE;
use everturn_terminal::{ApprovalsOptions, ChatOptions, LsOptions, ShowOptions, TailOptions};

pub use self::{
    operate::{
        CheckConfig, CodecCommand, CodecOptions, ConfigCommand, ConfigOptions, CreateKey, Expiry,
        HealthOptions, InitOptions, KeysCommand, KeysOptions, ListKeys, NewCodecKey, ReplayOptions,
        RetentionOptions, RevokeKey,
    },
    reads::{AuditOptions, FailuresOptions},
    serve::{
        AllOptions, DevOptions, GatewayOptions, ListenOptions, TelemetryOptions, TestTools,
        TraceOptions, TurnVersion, VersionOptions, Work, WorkerOptions,
    },
    tools::{CallTool, ListTools, ToolsCommand, ToolsOptions, ToolsStatus},
};
use crate::{
    logging::{self, LogFormat},
    transport::allowed::AllowedPlaintext,
    version::version,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    it is done, or it was told to stop
  1    it failed: standard error says why
  2    the command line is wrong, or a tool was not called
  130  a second Ctrl-C or SIGTERM ended it, or the first one ended a tool's call

Temporal is found by TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and TEMPORAL_TLS*. \
docs/configuration.md describes the keys of everturn.toml for agents and tools. \
docs/operate/configuration.md describes every option, environment variable and further key.";

const CHAT_HELP: &str = "\
Examples:
  everturn chat                              a new conversation
  everturn chat --agent support              a new conversation with an agent of yours
  everturn chat --conversation hello         goes on with a conversation
  everturn chat \"What is 2 + 2?\"             one turn, and the end

On a terminal, a message during a running turn waits for a new turn. Lines that begin with / are commands:
  /steer TEXT      joins the running turn before its next LLM call
  /interrupt TEXT  ends the running turn and begins a turn with TEXT
  /stop            ends the running turn, as Ctrl-C does; a second Ctrl-C leaves
  /quit            leaves, as Ctrl-D does; the turn goes on
  /help            says what can be typed
Without a terminal at standard input and output, or with TERM=dumb, it prints plain lines, and every line of standard
input is a message.

Exit codes:
  0    the conversation was left, or the turn completed (in a pipe: the last one)
  1    the turn failed, or the gateway refuses
  2    the command line is wrong
  3    the turn was cancelled
  130  it was left by a second Ctrl-C, or before the turn of the one message had ended";

/// A durable runtime for LLM agents on Temporal.
#[derive(Debug, Parser)]
#[command(
    name = "everturn",
    version = version(),
    about = "A durable runtime for LLM agents on Temporal",
    after_help = EXIT_CODES,
    max_term_width = 110
)]
pub struct Cli {
    /// Options of every role.
    #[command(flatten)]
    pub common: Common,
    /// The role or the command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every role.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Common {
    /// Configuration file; by default ./everturn.toml if it exists, otherwise built-in defaults. Files in the folder
    /// agents.d beside it add agents and tools.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_CONFIG",
        value_name = "FILE"
    )]
    pub config: Option<PathBuf>,
    /// Database: a SQLite file or a postgres:// URL; by default everturn.db in the data directory.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_DATABASE",
        value_name = "FILE|URL",
        hide_env_values = true
    )]
    pub database: Option<String>,
    /// Redis for live texts, rediss://host:port. Without Redis, live texts reach only a gateway in the worker's own
    /// process.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_REDIS",
        value_name = "URL",
        hide_env_values = true
    )]
    pub redis: Option<String>,
    /// Connections to other machines that may work without TLS, or without a check of the server's certificate:
    /// database, redis, temporal.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_ALLOW_PLAINTEXT",
        value_name = "NAMES",
        default_value_t,
        hide_default_value = true,
        value_parser = AllowedPlaintext::parse
    )]
    pub allow_plaintext: AllowedPlaintext,
    /// Directory for data; by default `everturn` in the user's state directory.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_DATA_DIR",
        value_name = "DIR"
    )]
    pub data_dir: Option<PathBuf>,
    /// Task queue of the workers.
    #[arg(long, global = true, hide_short_help = true, env = "EVERTURN_TASK_QUEUE", default_value = TASK_QUEUE, value_name = "NAME")]
    pub task_queue: String,
    /// Log filter, e.g. info or everturn=debug; by default warnings for commands on the terminal, otherwise info.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_LOG",
        value_name = "FILTER"
    )]
    pub log: Option<String>,
    /// Format of the log on standard error: text, or json for a JSON object per line.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        env = "EVERTURN_LOG_FORMAT",
        value_name = "FORMAT",
        default_value_t,
        value_parser = LogFormat::parse
    )]
    pub log_format: LogFormat,
}

/// The roles and commands of a process.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Writes a first agent: everturn.toml, and a tool in Python. Says what to run next.
    #[command(after_help = "Example: everturn init my-agent\n\n\
                      Exit codes: 0 the files are written; 1 a file exists already, or cannot be written. No file is overwritten.")]
    Init(InitOptions),
    /// Runs everything in one process, with a Temporal dev server, for development and for a first try.
    Dev(DevOptions),
    /// Runs turns. Start as many workers as you like.
    Worker(WorkerOptions),
    /// Serves REST and SSE. Start as many gateways as you like.
    Gateway(GatewayOptions),
    /// Runs a gateway and a worker in a single process, for a single pod or machine.
    All(AllOptions),
    /// Prepares the database and Temporal: schema and search attributes. Safe to repeat, also on several machines at
    /// once.
    Migrate,
    /// Checks the configuration file and the environment, without connecting to any server.
    Config(ConfigOptions),
    /// Makes keys for the encryption of payloads in Temporal.
    Codec(CodecOptions),
    /// Asks a running process whether the process is ready.
    #[command(
        after_help = "Exit codes: 0 the process is ready; 1 the process is not ready, or does not answer within 5 seconds."
    )]
    Health(HealthOptions),
    /// Removes conversations with a last event older than the given age. Keeps every conversation with a running or
    /// waiting turn.
    #[command(
        after_help = "Exit codes: 0 every old row is removed; 1 the command failed or was stopped, and can be run again."
    )]
    Retention(RetentionOptions),
    /// Checks before a release whether this version can continue the running turns, by replaying their histories.
    #[command(
        after_help = "Exit codes: 0 every history replays; 1 a history does not replay, or the command failed. The command only reads."
    )]
    Replay(ReplayOptions),
    /// Makes, lists and revokes API keys for callers of the gateway.
    Keys(KeysOptions),
    /// Prints the audit trail: actor, action, time, address and outcome of each entry. The oldest entry comes first.
    Audit(AuditOptions),
    /// Prints the failures of agents: how often each agent failed with each code, and the newest failures with their
    /// reasons.
    #[command(
        after_help = "Examples:\n  everturn failures\n  everturn failures --agent support --since 7d\n\n\
                      Exit codes: 0 the failures are printed; 1 the database cannot be read."
    )]
    Failures(FailuresOptions),
    /// Lists an agent's tools in this environment, or runs a tool by hand. Needs neither Temporal nor a database.
    Tools(ToolsOptions),
    /// Talks to a running gateway from the terminal.
    #[command(
        after_help = CHAT_HELP
    )]
    Chat(ChatOptions),
    /// Lists conversations with agent, state and title, the last updated first.
    #[command(
        after_help = "Examples:\n  everturn ls --agent support\n  everturn ls --waiting-for approval\n\n\
                      Exit codes: 0 the conversations are listed; 1 the gateway refuses."
    )]
    Ls(LsOptions),
    /// Lists the calls of all conversations that wait for an approval, the nearest deadline first.
    #[command(after_help = "Example: everturn approvals --json\n\n\
                      Exit codes: 0 the calls are listed; 1 the gateway refuses.")]
    Approvals(ApprovalsOptions),
    /// Follows a conversation: a line of text or JSON for each event.
    #[command(after_help = "Example: everturn tail hello --no-follow\n\n\
                      Exit codes: 0 a signal stopped the command, or --no-follow came to the last event; 1 the gateway refuses, \
                      or ends the stream for good.")]
    Tail(TailOptions),
    /// Shows on a time axis how a turn spent its time: LLM calls, tools and sub-agents.
    #[command(after_help = "Example: everturn show hello\n\n\
                      Exit codes: 0 the turn is shown; 1 the turn is not found, or the gateway refuses.")]
    Show(ShowOptions),
    /// Prints completions of the command line for a shell.
    #[command(
        after_help = "Example, for bash: everturn completions bash > ~/.local/share/bash-completion/completions/everturn"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

impl Command {
    /// Returns the log filter of a command without `--log`. Commands on a terminal log warnings only.
    fn default_log_filter(&self) -> &'static str {
        match self {
            Self::Dev(_)
            | Self::Chat(_)
            | Self::Completions { .. }
            | Self::Ls(_)
            | Self::Approvals(_)
            | Self::Tail(_)
            | Self::Show(_)
            | Self::Keys(_)
            | Self::Audit(_)
            | Self::Failures(_)
            | Self::Tools(_)
            | Self::Config(_)
            | Self::Health(_)
            | Self::Init(_)
            | Self::Codec(_) => "warn",
            // The SDK warns about each failed replay, but standard output already reports it.
            Self::Replay(_) => "error",
            Self::Worker(_)
            | Self::Gateway(_)
            | Self::All(_)
            | Self::Migrate
            | Self::Retention(_) => "info,temporalio_sdk_core=warn",
        }
    }
}

impl Cli {
    /// Returns a script with completions of the command line for a shell.
    pub fn completions(shell: Shell) -> String {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Self::command(), "everturn", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    }

    /// Starts logging according to the options.
    pub fn start_logging(&self) -> anyhow::Result<()> {
        let filter = self.common.log.as_deref();
        logging::start(
            filter.unwrap_or_else(|| self.command.default_log_filter()),
            self.common.log_format,
        )
    }
}

impl Common {
    /// Returns the directory for data.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| {
            let state = env::var_os("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
            state
                .or_else(home)
                .unwrap_or_else(env::temp_dir)
                .join("everturn")
        })
    }

    /// Returns the database: a file or a URL.
    pub fn database(&self) -> String {
        self.database
            .clone()
            .unwrap_or_else(|| self.data_dir().join("everturn.db").display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_a_client_lists_its_own_options_first() {
        for name in ["chat", "ls", "tail", "show"] {
            let mut command = Cli::command();
            command.build();
            let command = command.find_subcommand_mut(name).unwrap();
            let help = command.render_long_help().to_string();
            let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
            let (own, gateway) = (at("Options:"), at("The gateway:"));
            let (common, example) = (at("Options of every command:"), at("Example"));
            assert!(
                own < gateway && gateway < common && common < example,
                "{help}"
            );
            let short = command.render_help().to_string();
            assert!(!short.contains("--database"), "{short}");
        }
    }

    #[test]
    fn completions_know_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = Cli::completions(shell);
            for command in Cli::command().get_subcommands() {
                assert!(
                    script.contains(command.get_name()),
                    "{shell}: {}",
                    command.get_name()
                );
            }
        }
    }

    #[test]
    fn a_wrong_log_format_is_refused_with_what_there_is() {
        let command = ["everturn", "--log-format", "xml", "migrate"];
        let error = Cli::try_parse_from(command).unwrap_err().to_string();
        assert!(
            error.contains("`text` or as `json`") && error.contains("EVERTURN_LOG_FORMAT"),
            "{error}"
        );
    }
}
