//! One connection to a server: the handshake, the list of tools, and calls with their progress and their cancel.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
        ClientConfig, ClientRequest, Implementation, JsonObject, PaginatedRequestParams,
        PingRequest, ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId,
        RequestMetaObject, ServerPeerInfo, ServerResult, SubscriptionFilter, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, PeerRequestOptions,
        RunningService, ServiceError, serve_client_with_lifecycle_and_ct,
    },
};
use tokio::{
    process::Command,
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    http,
    options::{Place, ServerOptions},
    stdio::{ChildTransport, Ending},
};
use crate::tools::ToolContext;

/// Pages of a list of tools: a server that never ends its list is cut off.
const MAX_PAGES: usize = 50;
/// Part of `connect_timeout` that a child has to answer the question of the newer protocol.
const PROBE_SHARE: f32 = 0.7;
/// What a server may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// In place of no limit on the silence of a call: far beyond the longest time-out of a tool.
const FOR_EVER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What rmcp runs for a connection, until it ends.
pub(super) type Running = RunningService<RoleClient, Handler>;

/// A connection whose handshake is done.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    handler: Handler,
    ending: Ending,
    stop: CancellationToken,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("its configuration cannot be used: {0}")]
    Options(String),
    #[error("its command cannot be started: {0}")]
    Start(std::io::Error),
    #[error("the handshake failed: {0}")]
    Handshake(#[from] Box<ClientInitializeError>),
    #[error("its tools cannot be listed: {0}")]
    List(ServiceError),
    #[error("it did not answer within {} s (`connect_timeout`)", .0.as_secs())]
    TimedOut(Duration),
}

/// Why a call gave no answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection had ended before the call was sent.
    NotSent,
    Service(ServiceError),
    /// Our side ended the connection in mid-call.
    Ended(String),
    /// Neither an answer nor progress for this long.
    Silent(Duration),
}

impl Connection {
    /// Starts or reaches the server and lists its tools.
    pub(super) async fn open(
        options: &ServerOptions,
        stop: CancellationToken,
    ) -> Result<(Self, Running, Vec<Tool>), ConnectError> {
        let open = async {
            let (connection, running) = Self::shake_hands(options, stop).await?;
            let tools = connection
                .list_tools(options.max_tools)
                .await
                .map_err(ConnectError::List)?;
            Ok((connection, running, tools))
        };
        let opened = tokio::time::timeout(options.connect_timeout, open).await;
        opened.unwrap_or(Err(ConnectError::TimedOut(options.connect_timeout)))
    }

    async fn shake_hands(
        options: &ServerOptions,
        stop: CancellationToken,
    ) -> Result<(Self, Running), ConnectError> {
        let handler = Handler::default();
        let ending: Ending = Arc::new(OnceLock::new());
        let token = stop.clone();
        let running = match &options.place {
            Place::Command {
                command,
                directory,
                environment,
            } => {
                let command = to_command(command, directory.as_deref())?;
                let bytes = options.max_message_bytes;
                let child = ChildTransport::start(
                    &options.name,
                    command,
                    environment,
                    bytes,
                    ending.clone(),
                )
                .map_err(ConnectError::Start)?;
                greet(
                    &handler,
                    child,
                    options.connect_timeout.mul_f32(PROBE_SHARE),
                    token,
                )
                .await
            }
            Place::Url { url, headers } => {
                let transport = http::transport(options, url, headers, token.clone())
                    .map_err(ConnectError::Options)?;
                let lifecycle = ClientLifecycleMode::Auto {
                    preferred_versions: vec![ProtocolVersion::LATEST],
                    legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
                };
                serve_client_with_lifecycle_and_ct(handler.clone(), transport, lifecycle, token)
                    .await
            }
        };
        let running = running.map_err(Box::new)?;
        let peer = running.peer().clone();
        Ok((
            Self {
                peer,
                handler,
                ending,
                stop,
            },
            running,
        ))
    }

    /// The server's tools, at most one more than `max_tools`, so that the caller notices that there are more.
    pub(super) async fn list_tools(&self, max_tools: usize) -> Result<Vec<Tool>, ServiceError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _page in 0..MAX_PAGES {
            let page = self
                .peer
                .list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor)))
                .await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > max_tools {
                break;
            }
        }
        tools.truncate(max_tools.saturating_add(1));
        Ok(tools)
    }

    /// Waits until the server says that its tools have changed. One that speaks the newer protocol says so only to
    /// those who asked for it.
    pub(super) async fn tools_changed(&self) {
        self.handler.tools_changed.notified().await;
    }

    /// Asks the server for news of its tools for as long as the connection lives, where the protocol wants that.
    pub(super) async fn subscribe(&self) {
        let Some(server) = self.peer.peer_info() else {
            return;
        };
        let has_news = server
            .capabilities
            .tools
            .as_ref()
            .is_some_and(|tools| tools.list_changed == Some(true));
        if server.protocol_version.has_initialize() || !has_news {
            return;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let Ok(mut news) = self.peer.listen(filter).await.inspect_err(|error| {
            tracing::debug!(%error, "an MCP server does not tell when its tools change");
        }) else {
            return;
        };
        while let Ok(Some(_changed)) = news.next().await {
            self.handler.tools_changed.notify_one();
        }
    }

    /// Calls a tool. Dropping the future tells the server that the call is cancelled.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: &ToolContext,
        idle_timeout: Option<Duration>,
    ) -> Result<ServerResult, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options().with_meta(meta(context));
        let mut call = self
            .peer
            .send_request_with_option(request, options)
            .await
            .map_err(|_ended| CallError::NotSent)?;
        let mut progress = self.handler.watch(call.progress_token.clone());
        let unanswered = CancelOnDrop {
            peer: &self.peer,
            id: Some(call.id.clone()),
        };
        let idle_timeout = idle_timeout.unwrap_or(FOR_EVER);
        let mut silent_until = Instant::now() + idle_timeout;
        loop {
            tokio::select! {
                biased;
                answer = &mut call.rx => {
                    unanswered.disarm();
                    return answer.unwrap_or(Err(ServiceError::TransportClosed)).map_err(|error| self.explained(error));
                }
                Some(step) = progress.next() => {
                    context.progress.report(&shown(&step));
                    silent_until = Instant::now() + idle_timeout;
                }
                () = tokio::time::sleep_until(silent_until) => return Err(CallError::Silent(idle_timeout)),
            }
        }
    }

    /// True when the server answers on this connection. One that was restarted refuses whatever comes in a session that
    /// it does not know.
    pub(super) async fn is_alive(&self) -> bool {
        let is_modern = |server: Arc<ServerPeerInfo>| !server.protocol_version.has_initialize();
        // The newer protocol has neither sessions nor pings.
        if self.peer.peer_info().is_none_or(is_modern) {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let answer = tokio::time::timeout(PING_TIMEOUT, self.peer.send_request(ping)).await;
        // No answer in time is no refusal: the server may be busy.
        !matches!(answer, Ok(Err(_)))
    }

    /// Ends the connection: what is in flight on it is lost.
    pub(super) fn end(&self) {
        self.stop.cancel();
    }

    /// True when nothing can be sent any more.
    pub(super) fn has_ended(&self) -> bool {
        self.stop.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Why our side ended it, if so.
    pub(super) fn ending(&self) -> Option<&str> {
        self.ending.get().map(String::as_str)
    }

    fn explained(&self, error: ServiceError) -> CallError {
        match self.ending() {
            Some(why) if matches!(error, ServiceError::TransportClosed) => {
                CallError::Ended(why.to_owned())
            }
            _ => CallError::Service(error),
        }
    }
}

/// Both eras of the protocol: `server/discover`, then `initialize` where that is unknown or not answered. rmcp's `Auto`
/// does the same, but gives up after 10 s, which a server that `npx` has to download first takes; a newer one has then
/// heard the question and refuses `initialize`.
async fn greet(
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

fn to_command(command: &[String], directory: Option<&Path>) -> Result<Command, ConnectError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(ConnectError::Options("`command` is empty".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    Ok(command)
}

/// Who calls (D1), for servers that log it or know idempotency keys.
fn meta(context: &ToolContext) -> RequestMetaObject {
    let pairs = [
        ("everturn/conversation_id", &context.conversation_id),
        ("everturn/execution_id", &context.execution_id),
        ("everturn/tool_call_id", &context.call_id),
        ("everturn/idempotency_key", &context.idempotency_key),
    ];
    let object: JsonObject = pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.clone().into()))
        .collect();
    object.into()
}

/// `3/10 copying`
fn shown(step: &ProgressNotificationParam) -> String {
    let total = step
        .total
        .map(|total| format!("/{total}"))
        .unwrap_or_default();
    let message = step
        .message
        .as_ref()
        .map(|message| format!(" {message}"))
        .unwrap_or_default();
    format!("{}{total}{message}", step.progress)
}

/// Tells the server that nobody waits for a call any more, unless it was answered.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl CancelOnDrop<'_> {
    fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        let reason = Some("the call was cancelled or timed out".to_owned());
        tokio::spawn(async move {
            let told = peer
                .notify_cancelled(CancelledNotificationParam::new(Some(id), reason))
                .await;
            if let Err(error) = told {
                tracing::debug!(%error, "an MCP server was not told of a cancel");
            }
        });
    }
}

/// What a server tells us unasked. It may ask us for nothing: no capability is declared.
#[derive(Clone, Default)]
pub(super) struct Handler {
    calls: Arc<Mutex<HashMap<ProgressToken, watch::Sender<Option<ProgressNotificationParam>>>>>,
    tools_changed: Arc<Notify>,
}

impl Handler {
    /// The progress of one call, for as long as what is returned lives.
    fn watch(&self, token: ProgressToken) -> Progress<'_> {
        let (sender, steps) = watch::channel(None);
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token.clone(), sender);
        Progress {
            handler: self,
            token,
            steps,
        }
    }
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get(&step.progress_token) {
            call.send_replace(Some(step));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let everturn = Implementation::new("everturn", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), everturn);
        // For `initialize`; the newer era says its version with each request.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }
}

/// The latest step of a call: a slow listener misses steps, and none wait for it.
struct Progress<'a> {
    handler: &'a Handler,
    token: ProgressToken,
    steps: watch::Receiver<Option<ProgressNotificationParam>>,
}

impl Progress<'_> {
    async fn next(&mut self) -> Option<ProgressNotificationParam> {
        self.steps.changed().await.ok()?;
        self.steps.borrow_and_update().clone()
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.handler
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.token);
    }
}
