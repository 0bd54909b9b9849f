//! The handshake with a server: over the pipes of a child process, or over HTTP, in both eras of the protocol.

use std::{path::Path, sync::Arc, time::Duration};

use everturn_supervisor::launch::{COMMON_VARIABLES, Launch};
use everturn_untrusted::Secrets;
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService,
        serve_client_with_lifecycle_and_ct,
    },
};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{
    error::ConnectError,
    handler::Handler,
    http,
    oauth::Access,
    options::{ServerLocation, ServerOptions},
    secrets::SecretFile,
    stderr::Log,
    stdio::{ChildTransport, Ending},
    told::Told,
};

/// The share of `connect_timeout` for a child's answer to `server/discover`, the request of the newer protocol.
const PROBE_SHARE: f32 = 0.7;

/// Parts of the names of variables with secret values. Other variables hold names and addresses, which a server may
/// well repeat.
const SECRET_NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];

/// The variable that names a child's tenant when every tenant has a separate child.
const TENANT_VARIABLE: &str = "EVERTURN_TENANT_ID";

/// rmcp's service of a connection, which runs until the connection ends.
pub(super) type Running = RunningService<RoleClient, Handler>;

/// Starts or reaches the server and negotiates the protocol. `access` provides tokens for the server. `stop` ends the
/// connection. `ending` receives the reason when this side ends the connection.
pub(super) async fn shake_hands(
    options: &ServerOptions,
    access: Option<&Arc<Access>>,
    handler: &Handler,
    ending: &Ending,
    stop: CancellationToken,
) -> Result<Running, ConnectError> {
    let running = match &options.location {
        ServerLocation::Command {
            command,
            directory,
            environment,
            environment_files,
            launch,
        } => {
            let tenant_id = options.tenant_id.as_deref();
            let mut environment = with_files(environment, environment_files, tenant_id).await?;
            let tenant =
                tenant_id.map(|tenant_id| (TENANT_VARIABLE.to_owned(), tenant_id.to_owned()));
            let secrets = Secrets::of(values_of(&environment, environment_files));
            environment.extend(tenant);
            let child = ChildTransport::start(
                &options.name,
                to_command(command, directory.as_deref(), launch)?,
                &environment,
                secrets,
                options.max_message_bytes,
                ending.clone(),
            )
            .map_err(ConnectError::Start)?;
            let probe_timeout = options.connect_timeout.mul_f32(PROBE_SHARE);
            let log = child.log().clone();
            match greet_child(handler, child, probe_timeout, stop).await {
                Err(error) => return Err(failed_child(error, &log).await),
                running => running,
            }
        }
        ServerLocation::Url {
            url,
            headers,
            header_files,
            oauth: _,
        } => {
            let headers = with_files(headers, header_files, options.tenant_id.as_deref()).await?;
            let told = Told {
                headers: Secrets::of(headers.iter().map(|(_, value)| value.as_str())),
                access: access.cloned(),
            };
            let transport = http::transport(options, url, &headers, told, stop.clone())
                .map_err(ConnectError::Options)?;
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            };
            serve_client_with_lifecycle_and_ct(handler.clone(), transport, lifecycle, stop).await
        }
    };
    Ok(running.map_err(Box::new)?)
}

/// Returns the given values together with the values in files.
async fn with_files(
    values: &[(String, String)],
    files: &[(String, SecretFile)],
    tenant_id: Option<&str>,
) -> Result<Vec<(String, String)>, ConnectError> {
    let mut all = values.to_vec();
    for (name, file) in files {
        let secret = file.read(tenant_id).await.map_err(ConnectError::Options)?;
        all.push((name.clone(), secret));
    }
    Ok(all)
}

/// Returns the values of secret variables: variables with a secret's name, and variables with a value in a file.
fn values_of<'a>(
    environment: &'a [(String, String)],
    files: &'a [(String, SecretFile)],
) -> impl Iterator<Item = &'a str> {
    let is_secret = |name: &str| {
        let upper = name.to_ascii_uppercase();
        files.iter().any(|(file, _)| file == name)
            || SECRET_NAMES.iter().any(|part| upper.contains(part))
    };
    let secrets = environment.iter().filter(move |(name, _)| is_secret(name));
    secrets.map(|(_, value)| value.as_str())
}

/// Asks `server/discover` for the newer protocol, and then `initialize` if `server/discover` is unknown or
/// unanswered. rmcp's `Auto` does so too, but gives up after 10 s. A server that `npx` must download first takes
/// longer, and a server of the newer protocol has then received `server/discover` and refuses `initialize`.
async fn greet_child(
    handler: &Handler,
    child: ChildTransport,
    probe_timeout: Duration,
    stop: CancellationToken,
) -> Result<Running, ClientInitializeError> {
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    };
    let probe =
        serve_client_with_lifecycle_and_ct(handler.clone(), child.clone(), discover, stop.clone());
    match tokio::time::timeout(probe_timeout, probe).await {
        Ok(Err(ClientInitializeError::JsonRpcError(_))) | Err(_) => {}
        Ok(ended) => return ended,
    }
    serve_client_with_lifecycle_and_ct(
        handler.clone(),
        child,
        ClientLifecycleMode::Initialize,
        stop,
    )
    .await
}

/// Returns the reason why a child did not shake hands, with the child's last line on standard error.
async fn failed_child(error: ClientInitializeError, log: &Log) -> ConnectError {
    match (error, log.last_line().await) {
        (
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. },
            Some(line),
        ) => ConnectError::Died(line),
        (error, _) => ConnectError::Handshake(Box::new(error)),
    }
}

fn to_command(
    command: &[String],
    directory: Option<&Path>,
    launch: &Launch,
) -> Result<Command, ConnectError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(ConnectError::Options("`command` is empty".to_owned()));
    };
    let command = launch.command(program, &COMMON_VARIABLES);
    let mut command = Command::from(command.map_err(ConnectError::Start)?);
    command.args(arguments);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    Ok(command)
}
