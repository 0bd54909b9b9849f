//! `everturn dev`: Temporal dev server, demo model, gateway and worker in one process, for development.

mod adopted;
mod hints;
mod prepare;
mod progress;
mod temporal_server;
mod turn;

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail};
use everturn_client::GatewayClient;
use everturn_config::Config;
use everturn_gateway::config::{Scopes, TemporalUi};
use everturn_models::Providers;
use everturn_supervisor::shutdown;
use everturn_tools::Tool;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Common, DevOptions, TelemetryOptions},
    connections, environment, own_ports,
    reload::{Configured, Running, Told, Watch},
    roles,
    telemetry::Telemetry,
};

use hints::Hints;
use progress::Progress;
pub use temporal_server::{ServerLog, TemporalOptions, TemporalServer};

/// The time between two looks at the files with `--watch`. An author sees a change after half a second.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);

/// Runs all parts until Ctrl-C or until the turn of `--once` has ended, with `own` tools besides the built-in ones.
pub async fn run(
    common: &Common,
    options: DevOptions,
    own: Vec<Arc<dyn Tool>>,
) -> anyhow::Result<ExitCode> {
    if options
        .once
        .iter()
        .chain(&options.sample)
        .any(|message| message.trim().is_empty())
    {
        bail!("the message of the turn is empty");
    }
    let shutdown = shutdown::token()?;
    let configured = Configured::for_worker(
        common,
        closed_ports(common, &options),
        options.test_tools.effects_file.clone(),
        own,
    )?;
    let mut config = configured.config.clone();
    roles::gateway::check_exposure(&options.listen, &config)?;
    // A single gateway runs, and open streams have no alternative. Therefore Ctrl-C ends the gateway without a
    // drain.
    config.gateway.drain = Duration::ZERO;
    // Only one worker runs, and no peer can know more.
    config.worker.wait_for_peer = Duration::ZERO;
    // The port is bound first, because a port in use is the most common mistake.
    let listener = roles::gateway::bind(&options.listen)?;
    // A development server, like the server of a React app, has an origin of its own on this machine.
    let is_loopback = listener.local_addr()?.ip().is_loopback();
    config.gateway.auth.trusts_loopback_pages = is_loopback;
    if is_loopback {
        config.gateway.auth.anonymous_scopes = Scopes::of_developer();
    }
    let data_dir = common.data_dir();
    prepare::folder(&data_dir)?;
    let _lock = prepare::lock(&data_dir)?;
    println!("everturn dev · data in {}", data_dir.display());

    let mut temporal = start_temporal(common, &options).await?;
    let is_adopted = temporal.is_none();
    // A Temporal server from before may run without a web UI.
    if !is_adopted && config.gateway.temporal_ui.is_none() {
        let address = temporal_server::ui_address(options.temporal_port);
        config.gateway.temporal_ui = Some(TemporalUi::parse(&address)?);
    }
    let served = tokio::select! {
        served = serve(common, &options, is_adopted, config, configured, listener, shutdown.clone()) => served,
        error = ended(&mut temporal) => Err(error),
    };
    if let Some(temporal) = temporal {
        let stopping = Progress::start("stopping Temporal server");
        temporal.stop().await;
        stopping.done("");
    }
    served
}

/// Returns the ports that programs of tools may not reach: also Temporal's own server here with its web UI, which can signal
/// workflows, and the gateway, which may serve this machine without a credential.
fn closed_ports(common: &Common, options: &DevOptions) -> Vec<u16> {
    let temporal = options.temporal_port;
    let own = [
        temporal,
        temporal_server::ui_port(temporal),
        options.listen.listen.port(),
    ];
    let mut ports = own_ports::of(common);
    ports.extend(own.into_iter().filter(|port| *port != 0));
    ports
}

async fn start_temporal(
    common: &Common,
    options: &DevOptions,
) -> anyhow::Result<Option<TemporalServer>> {
    let data_dir = common.data_dir();
    let log = ServerLog::take(data_dir.join("temporal.log")).await?;
    let port = options.temporal_port;
    if TemporalServer::is_running(port).await {
        return Ok(None);
    }
    let options = TemporalOptions {
        binary: options.temporal_bin.clone(),
        port,
        database: Some(data_dir.join("temporal.db")),
        has_ui: true,
        dynamic_config: Vec::new(),
        http_port: None,
        metrics_port: None,
    };
    TemporalServer::start(&options, log).map(Some)
}

async fn ended(temporal: &mut Option<TemporalServer>) -> anyhow::Error {
    match temporal {
        Some(temporal) => temporal.ended().await,
        None => std::future::pending().await,
    }
}

async fn serve(
    common: &Common,
    options: &DevOptions,
    is_adopted: bool,
    config: Config,
    configured: Configured,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let telemetry = Telemetry::start(
        &TelemetryOptions {
            health_listen: None,
            traces: options.traces.clone(),
        },
        "dev",
    )?;
    let codec = config.codec.codec()?;
    let client = prepare::connect_temporal(common, options, is_adopted, codec, &shutdown).await?;
    let store = prepare::open_database(common, &config, &shutdown).await?;
    let (providers, _demo_model) = prepare::providers(&config, options.watch).await?;
    let stream = connections::stream(common)?;
    environment::forget_secrets();
    let (tools, running) = (configured.tools.clone(), Running::both(telemetry.clone()));
    watch(options, configured, &providers, &running, &shutdown);
    let url = format!("http://{}", reachable(listener.local_addr()?));
    let task_queue = common.task_queue.clone();
    let gateway = roles::gateway::serve(
        roles::gateway::Parts {
            client: client.clone(),
            store: store.clone(),
            stream: stream.clone(),
            config: config.clone(),
            task_queue: task_queue.clone(),
            telemetry: telemetry.clone(),
            running: Arc::clone(&running),
        },
        listener,
        shutdown.clone(),
    );
    let gateway = tokio::spawn(gateway);
    Progress::start("gateway").done(&url);
    let parts = roles::worker::Parts {
        client,
        store,
        stream,
        config,
        providers,
        tools,
        task_queue,
        only: None,
        deployment: None,
        telemetry: telemetry.clone(),
        running,
    };
    let worker = roles::worker::serve(parts, shutdown.clone());

    let stop = shutdown.clone();
    let visitor = async {
        let result = visit(options, &url, is_adopted, &stop).await;
        stop.cancel();
        result
    };
    let (code, worked) = tokio::join!(visitor, worker);
    let served = gateway.await.context("the gateway panicked");
    telemetry.end().await;
    served??;
    worked?;
    code
}

/// Looks at the files with `--watch`, and prints changes.
fn watch(
    options: &DevOptions,
    configured: Configured,
    providers: &Providers,
    running: &Arc<Running>,
    shutdown: &CancellationToken,
) {
    let listen = options.listen.clone();
    let watch = Watch {
        configured,
        providers: providers.clone(),
        check: Box::new(move |config| roles::gateway::check_exposure(&listen, config)),
        running: Arc::clone(running),
        told: Told::Terminal,
    };
    watch.start(options.watch.then_some(WATCH_INTERVAL), shutdown.clone());
}

/// Returns the listener's address for clients on the machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}

/// Runs the sample turn, and then waits for the end.
async fn visit(
    options: &DevOptions,
    url: &str,
    is_adopted: bool,
    shutdown: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let client = GatewayClient::with_token(url, options.token.as_deref())?;
    let mut sample = None;
    if let Some(message) = options.once.as_deref().or(options.sample.as_deref()) {
        let turn = turn::run_and_print(&client, message);
        let (conversation_id, is_complete) = tokio::select! {
            turn = turn => turn?,
            () = shutdown.cancelled() => anyhow::bail!("stopped before the turn ended; it goes on when everturn dev runs again"),
        };
        if options.once.is_some() {
            return Ok(if is_complete {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        sample = Some(conversation_id);
    }
    let hints = Hints {
        url,
        conversation_id: sample.as_deref(),
        temporal_bin: &options.temporal_bin,
        temporal_port: options.temporal_port,
        ui_port: (!is_adopted).then(|| temporal_server::ui_port(options.temporal_port)),
    };
    println!("{hints}");
    shutdown.cancelled().await;
    println!("\nstopping …");
    Ok(ExitCode::SUCCESS)
}
