//! The whole binary, to which users can add their own tools.

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use everturn_supervisor::launch::launched;
use everturn_terminal::{approvals, chat, list, tail, waterfall};
use everturn_tools::{Tool, TypedTool, typed};

use crate::{
    cli::{Cli, Command, ConfigCommand},
    dev, environment, logging, roles,
};

/// The binary `everturn` with user-defined tools. It reads the command line and the environment, and runs every role.
///
/// ```no_run
/// # use everturn_worker::{App, ToolContext, ToolError, TypedTool};
/// # struct Dice;
/// # impl TypedTool for Dice {
/// #     type Input = std::collections::BTreeMap<String, String>;
/// #     type Output = u8;
/// #     const NAME: &'static str = "dice";
/// #     const DESCRIPTION: &'static str = "Rolls a die.";
/// #     async fn run(&self, _: ToolContext, _: Self::Input) -> Result<u8, ToolError> {
/// #         Ok(4)
/// #     }
/// # }
/// #[tokio::main]
/// async fn main() -> std::process::ExitCode {
///     App::new().tool(Dice).run().await
/// }
/// ```
#[derive(Default)]
pub struct App {
    tools: Vec<Arc<dyn Tool>>,
}

impl App {
    /// Returns the standard binary, without user-defined tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. An agent uses the tool if the agent's `tools` have its name.
    #[must_use]
    pub fn tool(self, tool: impl TypedTool) -> Self {
        self.dynamic_tool(typed(tool))
    }

    /// Adds a tool whose schema is known only at run time.
    #[must_use]
    pub fn dynamic_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Reads the command line and runs one role to its end. Errors go to standard error.
    ///
    /// Call `run` before you start a program or a thread. A program of a tool also starts through it
    /// ([`launch`](everturn_supervisor::launch)), and it prevents other processes from reading this process's memory.
    pub async fn run(self) -> ExitCode {
        if let Some(failed) = launched() {
            return failed;
        }
        environment::shut();
        end_when_nobody_reads();
        // Installs one TLS backend for the whole process. Without a backend, HTTP clients panic at their first
        // request.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let cli = Cli::parse();
        let log_format = cli.common.log_format;
        if let Err(error) = cli.start_logging() {
            eprintln!("everturn: {error:#}");
            return ExitCode::FAILURE;
        }
        match self.run_role(cli).await {
            Ok(code) => code,
            Err(error) => {
                logging::report_failure(&error, log_format);
                ExitCode::FAILURE
            }
        }
    }

    async fn run_role(self, cli: Cli) -> anyhow::Result<ExitCode> {
        match cli.command {
            Command::Dev(options) => Box::pin(dev::run(&cli.common, options, self.tools)).await,
            Command::Worker(options) => {
                Box::pin(roles::worker::run(&cli.common, options, self.tools)).await
            }
            Command::Gateway(options) => Box::pin(roles::gateway::run(&cli.common, options)).await,
            Command::All(options) => {
                Box::pin(roles::all::run(&cli.common, options, self.tools)).await
            }
            Command::Migrate => roles::migrate::run(&cli.common).await,
            Command::Config(options) => match options.command {
                ConfigCommand::Check(options) => {
                    Box::pin(roles::config::check(&cli.common, options, self.tools)).await
                }
            },
            Command::Init(options) => roles::init::run(&options),
            Command::Health(options) => roles::health::run(options).await,
            Command::Codec(options) => roles::codec_key::run(options.command),
            Command::Replay(options) => roles::replay::run(&cli.common, options).await,
            Command::Retention(options) => {
                Box::pin(roles::retention::run(&cli.common, options)).await
            }
            Command::Audit(options) => roles::audit::run(&cli.common, options).await,
            Command::Failures(options) => roles::failures::run(&cli.common, options).await,
            Command::Keys(options) => roles::keys::run(&cli.common, options.command).await,
            Command::Tools(options) => roles::tools::run(&cli.common, options, self.tools).await,
            Command::Chat(options) => Box::pin(chat::run(options, &cli.common.data_dir())).await,
            Command::Ls(options) => list::run(options).await,
            Command::Approvals(options) => approvals::run(options).await,
            Command::Completions { shell } => {
                print!("{}", Cli::completions(shell));
                Ok(ExitCode::SUCCESS)
            }
            Command::Tail(options) => tail::run(options).await,
            Command::Show(options) => waterfall::run(options).await,
        }
    }
}

/// The exit code after the reader of the output has closed the pipe. Shells use 128 plus the number of SIGPIPE.
const NOBODY_READS: i32 = 141;

/// Ends the process when the reader closes the pipe, as in `everturn tools list | head -1`. The print macros would
/// panic, and users would take a panic for a bug.
fn end_when_nobody_reads() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or_default();
        if message.starts_with("failed printing to stdout") && message.contains("Broken pipe") {
            std::process::exit(NOBODY_READS);
        }
        otherwise(panic);
    }));
}
