//! `everturn dev`: Temporal dev server, demo model, gateway and worker in one process, for development.

mod progress;
mod temporal_server;
mod turn;

use std::{net::SocketAddr, process::ExitCode};

use anyhow::Context;
use everturn_activities::model::{Provider, ProviderKind};
use everturn_stream::InProcessStream;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Common, DevOptions},
    client::GatewayClient,
    config::{self, Config},
    connections,
    demo::DemoModel,
    roles, shutdown,
};

use progress::Progress;
pub use temporal_server::{TemporalOptions, TemporalServer};

/// Runs everything until Ctrl-C, or until the one turn of `--once` has ended.
pub async fn run(common: &Common, options: DevOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let tools = roles::worker::tools(options.test_tools.clone())?;
    let config = Config::load(common.config.as_deref(), &tools.names())?;
    // Before anything is started: a port that is taken is the most common mistake.
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another address with --listen", options.listen))?;
    let data_dir = common.data_dir();
    std::fs::create_dir_all(&data_dir).with_context(|| format!("cannot create {}", data_dir.display()))?;
    println!("everturn dev · data in {}", data_dir.display());

    let mut temporal = start_temporal(common, &options).await?;
    let served = tokio::select! {
        served = serve(common, &options, config, tools, listener, shutdown.clone()) => served,
        error = ended(&mut temporal) => Err(error),
    };
    if let Some(temporal) = temporal {
        let stopping = Progress::start("stopping Temporal server");
        temporal.stop().await;
        stopping.done("");
    }
    served
}

async fn start_temporal(common: &Common, options: &DevOptions) -> anyhow::Result<Option<TemporalServer>> {
    let port = options.temporal_port;
    if TemporalServer::is_running(port).await {
        Progress::start("Temporal server").done(&format!("the one that runs on 127.0.0.1:{port}"));
        return Ok(None);
    }
    let data_dir = common.data_dir();
    TemporalServer::start(&TemporalOptions {
        binary: options.temporal_bin.clone(),
        port,
        database: Some(data_dir.join("temporal.db")),
        log: data_dir.join("temporal.log"),
        has_ui: true,
    })
    .map(Some)
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
    config: Config,
    tools: everturn_activities::tools::ToolRegistry,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let waiting = Progress::start("Temporal server");
    let client = connections::local_temporal(options.temporal_port, &shutdown).await?;
    connections::register_search_attributes(&client).await?;
    waiting.done(&format!("127.0.0.1:{}", options.temporal_port));

    let waiting = Progress::start("database");
    let store = connections::store(common).await?;
    waiting.done(&common.database().display().to_string());

    let mut providers = config.providers.clone();
    let demo = if config.needs_demo_model() { Some(DemoModel::start().await?) } else { None };
    if let Some(demo) = &demo {
        let provider =
            Provider { kind: ProviderKind::OpenAi, base_url: Some(demo.base_url()), api_key: "demo".to_owned() };
        providers.insert(config::DEMO_PROVIDER.to_owned(), provider);
        Progress::start("demo model").done("no provider's key is configured: a set of rules answers");
    }

    let stream = InProcessStream::default();
    let url = format!("http://{}", listener.local_addr()?);
    let task_queue = common.task_queue.clone();
    let gateway = roles::gateway::serve(
        roles::gateway::Parts {
            client: client.clone(),
            store: store.clone(),
            stream: stream.clone(),
            config: config.clone(),
            task_queue: task_queue.clone(),
        },
        listener,
        shutdown.clone(),
    );
    let gateway = tokio::spawn(gateway);
    Progress::start("gateway").done(&url);
    let parts = roles::worker::Parts { client, store, stream, config, providers, tools, task_queue };
    let worker = roles::worker::serve(parts, shutdown.clone());

    let stop = shutdown.clone();
    let visitor = async {
        let result = visit(options, &url, &stop).await;
        stop.cancel();
        result
    };
    let (code, worked) = tokio::join!(visitor, worker);
    gateway.await.context("the gateway panicked")??;
    worked?;
    code
}

/// What happens while everything runs: the sample turn, then nothing until told to stop.
async fn visit(options: &DevOptions, url: &str, shutdown: &CancellationToken) -> anyhow::Result<ExitCode> {
    let client = GatewayClient::new(url)?;
    if let Some(message) = options.once.as_deref().or(options.sample.as_deref()) {
        let turn = turn::run_and_print(&client, message);
        let (conversation_id, is_complete) = tokio::select! {
            turn = turn => turn?,
            () = shutdown.cancelled() => anyhow::bail!("stopped before the turn ended; it goes on when everturn dev runs again"),
        };
        if options.once.is_some() {
            return Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        print_hints(options, options.listen, url, Some(&conversation_id));
    } else {
        print_hints(options, options.listen, url, None);
    }
    shutdown.cancelled().await;
    println!("\nstopping …");
    Ok(ExitCode::SUCCESS)
}

fn print_hints(options: &DevOptions, listen: SocketAddr, url: &str, conversation_id: Option<&str>) {
    let chat_url = if listen.port() == 8080 { String::new() } else { format!(" --url {url}") };
    let address = format!("--address 127.0.0.1:{}", options.temporal_port);
    let workflow = format!("conversation-{}", conversation_id.unwrap_or("<conversation id>"));
    println!(
        "
gateway      {url}/api/v1/agent/conversations
temporal ui  http://127.0.0.1:{ui}
chat         everturn chat{chat_url}
inspect      temporal workflow list {address} --query 'AgentName=\"default\"'
             temporal workflow show {address} --workflow-id {workflow}
             temporal workflow query {address} --workflow-id {workflow} --type status
stop         Ctrl-C
",
        ui = options.temporal_port.saturating_add(1000),
    );
}
