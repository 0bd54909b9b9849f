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
use tokio::{process::Command, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    answered::Answered,
    error::ConnectError,
    handler::Handler,
    http,
    oauth::Access,
    options::{ServerLocation, ServerOptions},
    secrets::SecretFile,
    sse::SseTransport,
    stderr::{Log, Tail},
    stdio::{ChildTransport, Ending},
    told::Told,
};

/// The time for the answer to `server/discover`, the request of the newer protocol. A server of the older protocol may answer
/// with an error, end, or keep silent.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The pauses before the tries of a program that does not start beside another try.
const ALONE_PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1500),
];

/// Parts of the names of variables with secret values. Other variables hold names and addresses, which a server may
/// well repeat.
const SECRET_NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];

/// The variable that names a child's tenant when every tenant has a separate child.
const TENANT_VARIABLE: &str = "EVERTURN_TENANT_ID";

/// rmcp's service of a connection, which runs until the connection ends.
pub(super) type Running = RunningService<RoleClient, Handler>;

/// The first request of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// `server/discover`, since protocol 2026-07-28.
    Discover,
    /// `initialize`, up to protocol 2025-11-25.
    Initialize,
    /// `initialize` over a stream of events, up to protocol 2024-11-05.
    Stream,
}

/// A handshake with a server.
pub(super) struct Handshake<'a> {
    pub(super) options: &'a ServerOptions,
    /// Provides tokens for the server.
    pub(super) access: Option<&'a Arc<Access>>,
    pub(super) handler: &'a Handler,
    /// Ends the connection.
    pub(super) stop: &'a CancellationToken,
    /// Gets the last lines on the standard error of a program.
    pub(super) tail: &'a Tail,
}

/// A connection after its handshake.
pub(super) struct Greeted {
    pub(super) running: Running,
    pub(super) era: Era,
    /// The reason when this side ends the connection.
    pub(super) ending: Ending,
}

impl Handshake<'_> {
    /// Starts or reaches the server and negotiates the protocol. `known` is the era of an earlier connection.
    ///
    /// Without a known era, the handshake asks `server/discover` first, and falls back to `initialize` after any error, end or
    /// silence. Each try has a process or a connection of its own, because `server/discover` ends or breaks some servers of the
    /// older protocol. A silent server may be one that starts slowly, so its first try goes on beside the second, and the first
    /// answer counts.
    pub(super) async fn shake_hands(&self, known: Option<Era>) -> Result<Greeted, ConnectError> {
        if let Some(era) = known {
            return self.greet(era).await;
        }
        let mut newer = Box::pin(self.greet(Era::Discover));
        let greeted = match timeout(PROBE_TIMEOUT, &mut newer).await {
            Ok(Ok(greeted)) => return Ok(greeted),
            Ok(Err(error)) if error.is_final() => return Err(error),
            Ok(Err(_)) => self.greet(Era::Initialize).await,
            Err(_silent) => self.greet_beside(newer).await,
        };
        match greeted {
            Err(error) if self.has_url() && !error.is_final() && !error.is_refusal() => {
                let older = self.greet(Era::Stream).await;
                older.map_err(|_| error)
            }
            greeted => greeted,
        }
    }

    /// Makes the try with `initialize` beside the silent try with `server/discover`.
    async fn greet_beside(
        &self,
        mut newer: impl Future<Output = Result<Greeted, ConnectError>> + Unpin,
    ) -> Result<Greeted, ConnectError> {
        let mut older = Box::pin(self.greet(Era::Initialize));
        let (greeted, is_silent) = tokio::select! {
            biased;
            greeted = &mut newer => match greeted {
                Ok(greeted) => return Ok(greeted),
                Err(_) => (older.await, false),
            },
            greeted = &mut older => (greeted, true),
        };
        match greeted {
            Err(error) if is_silent && error.is_refusal() => newer.await.map_err(|_| error),
            // Some programs run only once at a time, and the silent program takes a moment to end.
            Err(error) if is_silent && !self.has_url() && !error.is_final() => {
                drop(newer);
                for pause in ALONE_PAUSES {
                    tokio::time::sleep(pause).await;
                    if let Ok(greeted) = self.greet(Era::Initialize).await {
                        return Ok(greeted);
                    }
                }
                Err(error)
            }
            greeted => greeted,
        }
    }

    /// Makes one try.
    async fn greet(&self, era: Era) -> Result<Greeted, ConnectError> {
        let ending = Ending::default();
        let lifecycle = match era {
            Era::Discover => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::LATEST],
            },
            Era::Initialize | Era::Stream => ClientLifecycleMode::Initialize,
        };
        let (handler, stop) = (self.handler.clone(), self.stop.child_token());
        let running = match &self.options.location {
            ServerLocation::Unusable { reason } => {
                return Err(ConnectError::Options(reason.clone()));
            }
            ServerLocation::Command { .. } => {
                let child = self.start(ending.clone()).await?;
                let (log, child) = (child.log().clone(), Answered::new(child));
                let greeted = serve_client_with_lifecycle_and_ct(handler, child, lifecycle, stop);
                match greeted.await {
                    Ok(running) => running,
                    Err(error) => return Err(failed_child(error, &log).await),
                }
            }
            ServerLocation::Url { url, .. } if era == Era::Stream => {
                let (headers, told) = self.headers().await?;
                let way = http::way(self.options, &headers, told).map_err(ConnectError::Options)?;
                let transport = SseTransport::open(way, url).await;
                let transport = Answered::new(transport.map_err(ConnectError::Stream)?);
                let greeted =
                    serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, stop);
                greeted.await.map_err(Box::new)?
            }
            ServerLocation::Url { url, .. } => {
                let (headers, told) = self.headers().await?;
                let transport = http::transport(self.options, url, &headers, told, stop.clone())
                    .map_err(ConnectError::Options)?;
                let greeted =
                    serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, stop);
                greeted.await.map_err(Box::new)?
            }
        };
        Ok(Greeted {
            running,
            era,
            ending,
        })
    }

    async fn start(&self, ending: Ending) -> Result<ChildTransport, ConnectError> {
        let options = self.options;
        let ServerLocation::Command {
            command,
            directory,
            environment,
            environment_files,
            launch,
        } = &options.location
        else {
            return Err(ConnectError::Options("`command` is missing".to_owned()));
        };
        let tenant_id = options.tenant_id.as_deref();
        let mut environment = with_files(environment, environment_files, tenant_id).await?;
        let tenant = tenant_id.map(|tenant_id| (TENANT_VARIABLE.to_owned(), tenant_id.to_owned()));
        let secrets = Secrets::of(values_of(&environment, environment_files));
        environment.extend(tenant);
        ChildTransport::start(
            &options.name,
            to_command(command, directory.as_deref(), launch)?,
            &environment,
            secrets,
            options.max_message_bytes,
            ending,
            self.tail.clone(),
        )
        .map_err(ConnectError::Start)
    }

    fn has_url(&self) -> bool {
        matches!(self.options.location, ServerLocation::Url { .. })
    }

    /// Returns the headers of requests, with the secrets in them.
    async fn headers(&self) -> Result<(Vec<(String, String)>, Told), ConnectError> {
        let ServerLocation::Url {
            headers,
            header_files,
            ..
        } = &self.options.location
        else {
            return Err(ConnectError::Options("`url` is missing".to_owned()));
        };
        let headers = with_files(headers, header_files, self.options.tenant_id.as_deref()).await?;
        let told = Told {
            headers: Secrets::of(headers.iter().map(|(_, value)| value.as_str())),
            access: self.access.cloned(),
        };
        Ok((headers, told))
    }
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
