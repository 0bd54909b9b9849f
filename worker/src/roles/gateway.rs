//! A gateway: REST and SSE.

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use everturn_config::Config;
use everturn_gateway::{
    AuthConfig, BacklogWatch, GatewayConfig, GatewayState, LostWorkerWatch, Ports, Reconciler,
    Removals, TemporalTurns, config::ANNOUNCED_POLL_INTERVAL, connections::listener,
    lost_workers::LostWorkerCounts, reconciler::ReconcilerCounts, turns::TemporalTurnsOptions,
};
use everturn_proto::is_loopback;
use everturn_store::{Backlogs, BlobFiles, Retention, Store};
use everturn_supervisor::shutdown;
use everturn_telemetry::gateway as measured;
use temporalio_client::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    audit::tell_configuration,
    cli::{Common, GatewayOptions, ListenOptions},
    connections::{self, Connected, Stream},
    consents, environment,
    reload::{self, Configured, Running},
    telemetry::{NotReady, Telemetry},
};

/// The parts of a gateway.
pub struct Parts {
    /// The connection to Temporal.
    pub client: Client,
    /// The store of events and queued messages.
    pub store: Store,
    /// Live texts.
    pub stream: Stream,
    /// Agents and limits.
    pub config: Config,
    /// Task queue of the workers.
    pub task_queue: String,
    /// Health and metrics.
    pub telemetry: Telemetry,
    /// The roles of the process, which get changed agents.
    pub running: Arc<Running>,
}

/// Runs a gateway until SIGTERM or Ctrl-C.
pub async fn run(common: &Common, options: GatewayOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let telemetry = Telemetry::start(&options.telemetry, "gateway")?;
    let configured = Configured::for_gateway(common)?;
    let config = configured.config.clone();
    check_exposure(&options.listen, &config)?;
    let listener = bind(&options.listen)?;
    let connected = connections::everything(
        common,
        config.store(config.postgres.clone()),
        &config.codec,
        &telemetry,
        &shutdown,
    )
    .await?;
    let Connected {
        client,
        store,
        stream,
    } = connected;
    environment::forget_secrets();
    tracing::info!(address = %listener.local_addr()?, "gateway is running");
    let running = Running::gateway(telemetry.clone());
    reload::start(configured, Box::new(check_approvers), &running, &shutdown);
    let parts = Parts {
        client,
        store,
        stream,
        config,
        task_queue: common.task_queue.clone(),
        telemetry: telemetry.clone(),
        running,
    };
    let served = serve(parts, listener, shutdown).await;
    telemetry.end().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses agents with a tool that needs a second person's approval, if the gateway does not authenticate callers.
pub fn check_approvers(config: &Config) -> anyhow::Result<()> {
    let Some((agent, tool)) = config
        .needs_other()
        .filter(|_| !config.gateway.auth.required)
    else {
        return Ok(());
    };
    bail!(
        "tool `{tool}` of agent `{agent}` needs the approval of another person (`by = \"other\"`), but this gateway knows \
         no person, because clients need no credential. Set `required = true` in [auth], or remove `by`."
    )
}

/// Refuses to serve other machines without authentication, unless the options allow the risk.
pub fn check_exposure(options: &ListenOptions, config: &Config) -> anyhow::Result<()> {
    check_approvers(config)?;
    if config.gateway.auth.required || options.insecure_no_auth {
        return Ok(());
    }
    let Some(exposure) = exposure(options, config) else {
        return Ok(());
    };
    bail!(
        "refusing to {exposure} without authentication: any client on the network could read and write every \
         conversation. Write `required = true` under [auth] in everturn.toml and make a key with `everturn keys create \
         --tenant default`, or serve this machine alone: listen on 127.0.0.1, without `public_url` and \
         `trusted_proxies`. When a proxy in front of the gateway authenticates clients, --insecure-no-auth \
         (EVERTURN_INSECURE_NO_AUTH=1) allows the address"
    )
}

/// Returns the reason why foreign machines can reach the gateway, if any. A proxy on this machine also uses loopback, but an
/// operator with a proxy configures the proxy in the gateway.
fn exposure(options: &ListenOptions, config: &Config) -> Option<String> {
    let public = config.gateway.auth.public_origin.as_ref();
    let listen = options.listen;
    if !listen.ip().is_loopback() {
        return Some(format!("listen on {listen}"));
    }
    if let Some(public) = public.filter(|public| !public.host().is_some_and(is_loopback)) {
        return Some(format!("be reached at {public} (`public_url` in [auth])"));
    }
    let proxies = &config.gateway.connections.trusted_proxies;
    let is_behind_proxies = !proxies.is_empty();
    is_behind_proxies.then(|| "be behind proxies (`trusted_proxies` in [gateway])".to_owned())
}

/// Allows any `Host` if the configuration names no host. Without authentication, a gateway beyond loopback serves any
/// caller behind its proxy or network ([`check_exposure`]), and the gateway cannot know its own names.
fn any_host_unless_named(auth: &mut AuthConfig) {
    if auth.allowed_hosts.as_ref().is_some_and(Vec::is_empty) {
        auth.allowed_hosts = None;
    }
}

/// Returns the configuration of a gateway on this listener, with the keys of its codec server.
fn configured(config: &Config, listener: &TcpListener) -> anyhow::Result<GatewayConfig> {
    let mut gateway = config.gateway.clone();
    gateway.codec = config.codec.server()?;
    if !listener.local_addr()?.ip().is_loopback() {
        any_host_unless_named(&mut gateway.auth);
    }
    Ok(gateway)
}

/// Binds the address, and fails for an address of a second process.
pub fn bind(options: &ListenOptions) -> anyhow::Result<TcpListener> {
    listener::bind(options.listen).with_context(|| {
        format!(
            "cannot listen on {}; choose another address with --listen",
            options.listen
        )
    })
}

/// Runs a gateway until `shutdown`.
pub async fn serve(
    parts: Parts,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let turns = temporal_turns(parts.client, parts.task_queue);
    tell_configuration(parts.store.audit.clone(), "gateway", &parts.config);
    let mut config = configured(&parts.config, &listener)?;
    let reconciler = Reconciler::new(
        parts.store.reconciliation,
        turns.clone(),
        Arc::clone(&parts.stream.cancels),
        config.reconciler.clone(),
    );
    let lost_workers = LostWorkerWatch::new(parts.store.lost_workers, turns.clone());
    let telemetry = parts.telemetry;
    count_backlog(&telemetry, parts.store.backlogs, &shutdown);
    telemetry.agents(&parts.config);
    telemetry.keep_traces_in(parts.store.traces);
    let blobs = parts.config.blobs.files(parts.store.blobs)?;
    remove_rests(parts.store.retention, blobs.clone(), &shutdown);
    let ports = Ports {
        events: parts.store.events,
        conversations: parts.store.conversations,
        messages: telemetry.messages(parts.store.messages),
        deliveries: telemetry.deliveries(),
        executions: parts.store.executions,
        turn_results: parts.store.turn_results,
        failures: parts.store.failures,
        past_calls: parts.store.past_calls,
        usage: parts.store.usage,
        outside: parts.store.outside,
        left_out: parts.store.left_out,
        results: parts.store.results,
        blobs,
        keys: parts.store.keys,
        owners: parts.store.owners,
        consents: consents::of_gateway(&parts.config, parts.store.consents)?,
        audit: parts.store.audit,
        tenants: parts.store.tenants,
        stream: parts.stream.reader,
        cancels: parts.stream.cancels,
        counts: parts.stream.counts,
        turns,
    };
    let (asked, is_shared) = (parts.config.poll_interval, parts.stream.is_shared);
    config.poll_interval = poll_interval(asked, is_shared, config.poll_interval);
    let counts = (reconciler.counts(), lost_workers.counts());
    let state = GatewayState::new(ports, config);
    let trail = Arc::clone(&state.ports.audit);
    parts.running.enter_gateway(state.agents.clone(), trail);
    let (checked, sampled) = (state.clone(), state.clone());
    telemetry.sample_connections(parts.store.connections);
    telemetry.sample(move || record(&sampled, &counts.0, &counts.1));
    telemetry.runs(&shutdown, move || check_ready(checked.clone()));
    let reconciling = tokio::spawn(reconciler.run(shutdown.clone()));
    let watching = tokio::spawn(lost_workers.run(shutdown.clone()));
    let served = everturn_gateway::serve(listener, state, shutdown)
        .await
        .context("the gateway ended");
    reconciling.abort();
    watching.abort();
    served
}

/// Records metrics of the gateway.
fn record(state: &GatewayState, reconciled: &ReconcilerCounts, lost: &LostWorkerCounts) {
    state.record();
    let numbers = reconciled.numbers();
    measured::reconciled("checked", numbers.checked);
    measured::reconciled("signalled", numbers.signalled);
    measured::reconciled("started", numbers.started);
    measured::reconciled("failed", numbers.failed);
    measured::reconciled("stuck", numbers.stuck);
    measured::lost_workers(lost.workers(), lost.activities());
}

/// Returns the port to Temporal for the workers of a task queue.
fn temporal_turns(client: Client, task_queue: String) -> Arc<TemporalTurns> {
    let options = TemporalTurnsOptions {
        task_queue,
        ..TemporalTurnsOptions::default()
    };
    Arc::new(TemporalTurns::new(client, options))
}

/// Returns why the gateway is not ready, if so.
async fn check_ready(state: GatewayState) -> Result<(), NotReady> {
    let ready = everturn_gateway::ready(&state).await;
    ready.map_err(|problem| NotReady::because(problem.detail()))
}

/// Removes what large conversations leave behind after their removal, until `shutdown`: rows, and objects of files.
fn remove_rests(store: Arc<dyn Retention>, blobs: BlobFiles, shutdown: &CancellationToken) {
    let removals = Removals::new(store).with_objects(blobs);
    tokio::spawn(removals.run(shutdown.clone()));
}

/// Counts the waiting work until `shutdown`, in a process with metrics.
fn count_backlog(telemetry: &Telemetry, store: Arc<dyn Backlogs>, shutdown: &CancellationToken) {
    if telemetry.is_served() {
        tokio::spawn(BacklogWatch::new(store).run(shutdown.clone()));
    }
}

/// Returns how often the store is polled for events without an announcement: the configured interval, or a default for
/// the kind of stream.
fn poll_interval(asked: Option<Duration>, is_shared: bool, default: Duration) -> Duration {
    match asked {
        Some(interval) => interval,
        None if is_shared => ANNOUNCED_POLL_INTERVAL,
        None => default,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use everturn_config::ReadBy;

    fn config(text: &str) -> Config {
        Config::parse(text, "everturn.toml", ReadBy::Gateway).unwrap()
    }

    fn is_served(listen: &str, config: &Config, insecure_no_auth: bool) -> bool {
        let options = ListenOptions {
            listen: listen.parse().unwrap(),
            insecure_no_auth,
        };
        check_exposure(&options, config).is_ok()
    }

    #[test]
    fn only_loopback_is_served_without_authentication() {
        let (open, closed) = (config(""), config("[auth]\nrequired = true\n"));
        for loopback in ["127.0.0.1:80", "127.1.2.3:80", "[::1]:80"] {
            assert!(is_served(loopback, &open, false), "{loopback}");
        }
        for reachable in [
            "0.0.0.0:80",
            "[::]:80",
            "10.0.0.1:80",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert!(!is_served(reachable, &open, false), "{reachable}");
            assert!(
                is_served(reachable, &closed, false) && is_served(reachable, &open, true),
                "{reachable}"
            );
        }
    }

    #[test]
    fn a_gateway_behind_a_proxy_asks_for_credentials() {
        let own = config("[auth]\npublic_url = \"http://localhost:8080\"\n");
        assert!(is_served("127.0.0.1:80", &own, false));
        for proxied in [
            "[auth]\npublic_url = \"https://agents.example.com\"\n",
            "[gateway]\ntrusted_proxies = [\"127.0.0.1\"]\n",
        ] {
            assert!(
                !is_served("127.0.0.1:80", &config(proxied), false),
                "{proxied}"
            );
            assert!(
                is_served("127.0.0.1:80", &config(proxied), true),
                "{proxied}"
            );
        }
        let closed =
            config("[auth]\nrequired = true\npublic_url = \"https://agents.example.com\"\n");
        assert!(is_served("127.0.0.1:80", &closed, false));
    }
}
