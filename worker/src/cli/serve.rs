//! Options of the roles with no end but a signal.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum, builder::FalseyValueParser};
use url::Url;

/// The address of the gateway's listener.
#[derive(Debug, Clone, Args)]
pub struct ListenOptions {
    /// Address to listen on. Other than loopback, and behind a proxy, it needs `required = true` under [auth] in the
    /// configuration.
    #[arg(
        long,
        env = "EVERTURN_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS"
    )]
    pub listen: SocketAddr,
    /// Serves without authentication on any address, and behind a proxy: whoever reaches it can do everything.
    #[arg(long, env = "EVERTURN_INSECURE_NO_AUTH", value_parser = FalseyValueParser::new())]
    pub insecure_no_auth: bool,
}

/// The collector of the turns' traces.
#[derive(Debug, Clone, Args)]
pub struct TraceOptions {
    /// Exports traces of turns to an OpenTelemetry collector, by OTLP over HTTP, such as http://127.0.0.1:4318. By
    /// default no traces are exported. The other variables of OpenTelemetry's SDK (OTEL_EXPORTER_OTLP_HEADERS,
    /// OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME, …) work, too.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        hide_env_values = true
    )]
    pub otlp_endpoint: Option<Url>,
    /// Adds the texts of models and tools to traces, at most 16 KiB of each text. The texts contain your users' data.
    #[arg(
        long,
        env = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        value_parser = FalseyValueParser::new()
    )]
    pub trace_content: bool,
}

/// Telemetry of a process.
#[derive(Debug, Clone, Args)]
pub struct TelemetryOptions {
    /// Address for probes and Prometheus: /startupz, /readyz, /livez and /metrics, without authentication. By default
    /// the process listens on no such address.
    #[arg(long, env = "EVERTURN_HEALTH_LISTEN", value_name = "ADDRESS")]
    pub health_listen: Option<SocketAddr>,
    /// The collector of traces.
    #[command(flatten)]
    pub traces: TraceOptions,
}

/// The tools of the end-to-end tests.
#[derive(Debug, Clone, Args)]
pub struct TestTools {
    /// Offers the test tools (test_once, test_read, test_idempotent) to agents that name them. The file gets the effects
    /// of the tools.
    #[arg(
        long = "test-tools",
        env = "EVERTURN_TEST_TOOLS",
        value_name = "FILE",
        hide = true
    )]
    pub effects_file: Option<PathBuf>,
}

/// Options of `dev`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 a signal stopped the process, or the turn of --once completed; 1 the process failed, or the turn \
                  did not complete; 130 a second Ctrl-C ended the process at once."
)]
pub struct DevOptions {
    /// The gateway's address.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// Key or token for --once and --sample, if the configuration requires one.
    #[arg(
        long,
        env = "EVERTURN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Port of Temporal on 127.0.0.1. The command uses a server on the port, or starts a server (its web UI is
    /// on port + 1000).
    #[arg(long, default_value_t = 7233, value_name = "PORT")]
    pub temporal_port: u16,
    /// The `temporal` binary.
    #[arg(
        long,
        env = "EVERTURN_TEMPORAL_BIN",
        default_value = "temporal",
        value_name = "FILE"
    )]
    pub temporal_bin: PathBuf,
    /// Runs a turn with the given message, prints the turn live, and exits. The exit code is 0 only if the turn completed.
    #[arg(long, value_name = "MESSAGE")]
    pub once: Option<String>,
    /// Takes over changed agents, prompts, tools and skills while turns run, and prints what has changed. A running turn
    /// keeps the agent of its beginning.
    #[arg(long)]
    pub watch: bool,
    /// Runs a turn with the given message at the start, and keeps running.
    #[arg(long, value_name = "MESSAGE", conflicts_with = "once")]
    pub sample: Option<String>,
    /// The collector of traces.
    #[command(flatten)]
    pub traces: TraceOptions,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}

/// The version of this worker.
#[derive(Debug, Clone, Args)]
pub struct VersionOptions {
    /// Temporal's worker deployment of the worker. With a deployment, the worker gets only turns of the worker's version.
    /// A deployment needs a build id, and the version must be made the current one (docs/operate/versions.md).
    #[arg(
        long,
        env = "TEMPORAL_DEPLOYMENT_NAME",
        value_name = "NAME",
        requires = "build_id"
    )]
    pub deployment: Option<String>,
    /// Build id of this worker; by default a checksum of the binary.
    #[arg(long, env = "TEMPORAL_WORKER_BUILD_ID", value_name = "ID")]
    pub build_id: Option<String>,
    /// Whether a deployment's turn ends on the version of its start, or moves to the newest version at its next step.
    #[arg(
        long,
        env = "EVERTURN_TURN_VERSION",
        value_enum,
        default_value_t = TurnVersion::Pinned,
        value_name = "VERSION"
    )]
    pub turns: TurnVersion,
}

/// The workers' version on which a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TurnVersion {
    /// The version of the turn's start, to the turn's end.
    Pinned,
    /// The current version, from the next step on.
    Newest,
}

/// A part of the workers' tasks, for separate pools of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// Runs workflows. Workers of the two other kinds make the LLM calls and run the tools of the turns.
    Workflows,
    /// Makes LLM calls.
    Models,
    /// Runs tools.
    Tools,
}

/// Options of `worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerOptions {
    /// Does only a part of the work, on a task queue of its own. An installation with such workers needs at least
    /// one worker of every kind. By default a worker does everything.
    #[arg(long, env = "EVERTURN_WORKER_ONLY", value_enum, value_name = "WORK")]
    pub only: Option<Work>,
    /// The worker's version.
    #[command(flatten)]
    pub version: VersionOptions,
    /// The worker's telemetry.
    #[command(flatten)]
    pub telemetry: TelemetryOptions,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}

/// Options of `gateway`.
#[derive(Debug, Clone, Args)]
pub struct GatewayOptions {
    /// The gateway's address.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// The gateway's telemetry.
    #[command(flatten)]
    pub telemetry: TelemetryOptions,
}

/// Options of `all`.
#[derive(Debug, Clone, Args)]
pub struct AllOptions {
    /// The gateway's address.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// The worker's version.
    #[command(flatten)]
    pub version: VersionOptions,
    /// The process's telemetry.
    #[command(flatten)]
    pub telemetry: TelemetryOptions,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}
