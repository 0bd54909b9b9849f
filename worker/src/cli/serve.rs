//! Options of the roles that run until they are told to stop.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum, builder::FalseyValueParser};
use url::Url;

/// Where a gateway listens.
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

/// Where the traces of turns go.
#[derive(Debug, Clone, Args)]
pub struct TraceOptions {
    /// Exports traces of turns to an OpenTelemetry collector, by OTLP over HTTP, such as http://127.0.0.1:4318. By default
    /// none. The other variables of OpenTelemetry's SDK (OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER,
    /// OTEL_SERVICE_NAME, …) hold, too.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        hide_env_values = true
    )]
    pub otlp_endpoint: Option<Url>,
    /// Puts the texts of models and tools into traces, 16 KiB of each at the most. They are your users' words.
    #[arg(
        long,
        env = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        value_parser = FalseyValueParser::new()
    )]
    pub trace_content: bool,
}

/// What operators see of a process.
#[derive(Debug, Clone, Args)]
pub struct TelemetryOptions {
    /// Address for probes and Prometheus: /startupz, /readyz, /livez and /metrics, without authentication. By default none.
    #[arg(long, env = "EVERTURN_HEALTH_LISTEN", value_name = "ADDRESS")]
    pub health_listen: Option<SocketAddr>,
    /// Where traces go.
    #[command(flatten)]
    pub traces: TraceOptions,
}

/// The tools of the end-to-end tests.
#[derive(Debug, Clone, Args)]
pub struct TestTools {
    /// Offers the test tools (test_once, test_read, test_idempotent) to agents that name them; effects are appended
    /// to this file.
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
    after_help = "Exit codes: 0 it was stopped, or the turn of --once completed; 1 it failed, or that turn did not \
                  complete; 130 a second Ctrl-C ended it at once."
)]
pub struct DevOptions {
    /// Where the gateway listens.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// Key or token that --once and --sample send, where the configuration requires one.
    #[arg(
        long,
        env = "EVERTURN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Port of Temporal on 127.0.0.1; a server that runs there is used, else one is started (its web UI on port + 1000).
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
    /// Runs one turn with this message, prints it as it happens, and exits: 0 only when the turn completed.
    #[arg(long, value_name = "MESSAGE")]
    pub once: Option<String>,
    /// Runs one turn with this message at the start, then stays up.
    #[arg(long, value_name = "MESSAGE", conflicts_with = "once")]
    pub sample: Option<String>,
    /// Where traces go.
    #[command(flatten)]
    pub traces: TraceOptions,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}

/// Which version of the workers this one is.
#[derive(Debug, Clone, Args)]
pub struct VersionOptions {
    /// Worker deployment of Temporal that this worker belongs to: it then gets turns of its own version only. It needs a
    /// build id, and the version must be made the current one (docs/operate/versions.md).
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
    /// Whether a turn of a deployment ends on the version that it began on, or moves to the newest one at its next step.
    #[arg(
        long,
        env = "EVERTURN_TURN_VERSION",
        value_enum,
        default_value_t = TurnVersion::Pinned,
        value_name = "VERSION"
    )]
    pub turns: TurnVersion,
}

/// Which version of the workers a turn runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TurnVersion {
    /// The one that it began on, to its end.
    Pinned,
    /// The current one, from its next step on.
    Newest,
}

/// A part of the work of workers, for pools of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// Runs workflows. The turns that it begins have their LLM calls and their tools done by workers of the other two kinds.
    Workflows,
    /// Makes LLM calls.
    Models,
    /// Runs tools.
    Tools,
}

/// Options of `worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerOptions {
    /// Does only a part of the work, on a task queue of its own. It takes at least one worker of each kind. By default a
    /// worker does everything.
    #[arg(long, env = "EVERTURN_WORKER_ONLY", value_enum, value_name = "WORK")]
    pub only: Option<Work>,
    /// Its version.
    #[command(flatten)]
    pub version: VersionOptions,
    /// What operators see of it.
    #[command(flatten)]
    pub telemetry: TelemetryOptions,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}

/// Options of `gateway`.
#[derive(Debug, Clone, Args)]
pub struct GatewayOptions {
    /// Where it listens.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// What operators see of it.
    #[command(flatten)]
    pub telemetry: TelemetryOptions,
}

/// Options of `all`.
#[derive(Debug, Clone, Args)]
pub struct AllOptions {
    /// Where the gateway listens.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// The version of the worker.
    #[command(flatten)]
    pub version: VersionOptions,
    /// What operators see of it.
    #[command(flatten)]
    pub telemetry: TelemetryOptions,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}
