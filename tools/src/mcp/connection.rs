//! A connection to a server: the list of tools, and calls with their progress and cancel.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_telemetry::trace;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientNotification,
        ClientRequest, CustomNotification, ErrorCode, GetExtensions, JsonObject,
        PaginatedRequestParams, PingRequest, RequestId, RequestMetaObject, ServerPeerInfo,
        ServerResult, SubscriptionFilter, Tool,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    error::{CallError, ConnectError},
    handler::Handler,
    handshake::{Era, Greeted, Handshake, Running},
    oauth::Access,
    options::{ServerLocation, ServerOptions},
    questions::Dialog,
    stderr::Tail,
    stdio::{Ending, Written},
    vital::Vital,
};
use crate::context::ToolContext;

/// The most pages of a list of tools, against a server that never ends the list.
const MAX_PAGES: usize = 50;
/// The time limit for the answer to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The limit on the silence of a call without a configured limit: far beyond the longest time-out of a tool.
const UNLIMITED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A connection after the handshake.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    /// The first request of the connection.
    pub(super) era: Era,
    handler: Handler,
    ending: Ending,
    stop: CancellationToken,
    vital: Vital,
    has_answered: AtomicBool,
}

/// The facts of earlier connections for a new connection.
pub(super) struct Before {
    /// The first request of the last connection.
    pub(super) era: Option<Era>,
    /// The time limit for the new connection.
    pub(super) limit: Duration,
    /// Gets the last lines on the standard error of a program.
    pub(super) tail: Tail,
}

impl Connection {
    /// Starts or reaches the server and lists its tools, within the time limit.
    pub(super) async fn open(
        options: &ServerOptions,
        access: Option<&Arc<Access>>,
        stop: CancellationToken,
        before: &Before,
    ) -> Result<(Self, Running, Vec<Tool>), ConnectError> {
        let open = async {
            let handler = Handler::new(options.questions);
            let handshake = Handshake {
                options,
                access,
                handler: &handler,
                stop: &stop,
                tail: &before.tail,
            };
            let Greeted {
                running,
                era,
                ending,
            } = handshake.shake_hands(before.era).await?;
            let peer = running.peer().clone();
            let connection = Self {
                vital: Vital::new(options, &peer, &ending, &stop),
                peer,
                era,
                handler,
                ending,
                stop,
                has_answered: AtomicBool::new(false),
            };
            let tools = connection
                .list_tools(options.max_tools)
                .await
                .map_err(ConnectError::List)?;
            Ok((connection, running, tools))
        };
        let opened = tokio::time::timeout(before.limit, open).await;
        opened.unwrap_or(Err(ConnectError::TimedOut(before.limit)))
    }

    /// Returns the server's tools, but at most `max_tools` and one more, so that the caller notices a longer list.
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

    /// Returns the server's own description: its name, version, protocol and instructions.
    pub(super) fn server(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Waits until the server reports changed tools. See [`Self::subscribe`].
    pub(super) async fn tools_changed(&self) {
        self.handler.tools_changed().await;
    }

    /// Asks the server to report changed tools for the lifetime of the connection. Only the newer protocol requires
    /// the request.
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
            self.handler.note_changed_tools();
        }
    }

    /// Calls a tool. Dropping the future tells the server that the call is cancelled.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        context: &ToolContext,
        server: &ServerOptions,
        dialog: &Dialog,
    ) -> Result<ServerResult, CallError> {
        let params = dialog.add_to(params);
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let written = Written::default();
        request.extensions_mut().insert(written.clone());
        // For a request over HTTP, the client cannot know how far the request came.
        let may_know_of_it = || match server.location {
            ServerLocation::Command { .. } => written.has_begun(),
            ServerLocation::Url { .. } | ServerLocation::Unusable { .. } => true,
        };
        let mut meta = meta(context, server.tell_caller);
        if self.closes_streams() {
            // A server of the newer protocol logs for a call that asks for a level.
            meta.0.insert(LOG_LEVEL.to_owned(), "info".into());
        }
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let mut call = self
            .peer
            .send_request_with_option(request, options)
            .await
            .map_err(|_ended| CallError::NotSent)?;
        let token = call.progress_token.clone();
        let mut progress = self
            .handler
            .watch(token, context.progress.clone(), dialog.clone());
        let mut unanswered = CancelOnDrop {
            connection: self,
            id: Some(call.id.clone()),
            context: Some(context),
            posts: self.closes_streams() && matches!(server.location, ServerLocation::Url { .. }),
        };
        let idle_timeout = server.idle_timeout.unwrap_or(UNLIMITED);
        let mut silent_until = Instant::now() + idle_timeout;
        loop {
            tokio::select! {
                biased;
                answer = &mut call.rx => {
                    unanswered.disarm();
                    if answer.is_ok() {
                        self.has_answered.store(true, Ordering::Relaxed);
                    }
                    return answer
                        .unwrap_or(Err(ServiceError::TransportClosed))
                        .map_err(|error| self.explained(error, may_know_of_it()));
                }
                () = progress.next() => {
                    silent_until = Instant::now() + idle_timeout;
                }
                () = tokio::time::sleep_until(silent_until) => {
                    // The call may be made again, and then wants the result of this call.
                    unanswered.context = None;
                    return Err(CallError::Silent(idle_timeout));
                }
            }
        }
    }

    /// Returns true when the server answers on this connection. A restarted server refuses requests in an unknown
    /// session.
    pub(super) async fn is_alive(&self) -> bool {
        // The newer protocol has neither sessions nor pings.
        if self.closes_streams() {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let answer = tokio::time::timeout(PING_TIMEOUT, self.peer.send_request(ping)).await;
        // A ping without an answer in time does not count as refused, because the server may be busy. Some servers know no pings.
        match answer {
            Ok(Err(ServiceError::McpError(refusal))) => refusal.code == ErrorCode::METHOD_NOT_FOUND,
            Ok(Err(_)) => false,
            Ok(Ok(_)) | Err(_) => true,
        }
    }

    /// Returns true for a connection of the newer protocol, in which a client cancels a call over HTTP by closing its
    /// stream.
    fn closes_streams(&self) -> bool {
        let is_modern = |server: Arc<ServerPeerInfo>| !server.protocol_version.has_initialize();
        self.peer.peer_info().is_none_or(is_modern)
    }

    /// Ends the connection. Calls in flight are lost.
    pub(super) fn end(&self) {
        self.stop.cancel();
    }

    /// Returns true when the connection can send no more requests.
    pub(super) fn has_ended(&self) -> bool {
        self.stop.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Returns true after the first answer to a call.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Returns the reason if this side has ended the connection.
    pub(super) fn ending(&self) -> Option<&str> {
        self.ending.get().map(String::as_str)
    }

    fn explained(&self, error: ServiceError, may_know_of_it: bool) -> CallError {
        match (error, self.ending()) {
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), _)
                if !may_know_of_it =>
            {
                CallError::NotSent
            }
            (ServiceError::TransportClosed, Some(why)) => CallError::Ended(why.to_owned()),
            (error, _) => CallError::Service(error),
        }
    }
}

/// Tells the server on drop that the call is cancelled, unless the server has answered. A server that does not answer any
/// more is restarted.
struct CancelOnDrop<'a> {
    connection: &'a Connection,
    id: Option<RequestId>,
    /// The context of a call that nobody makes again.
    context: Option<&'a ToolContext>,
    /// True when the client must post the notification itself, because rmcp only closes the stream. A durable server
    /// cannot tell a closed stream from a broken connection.
    posts: bool,
}

impl CancelOnDrop<'_> {
    fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (peer, vital) = (self.connection.peer.clone(), self.connection.vital.clone());
        let reason = Some("the call was cancelled or timed out".to_owned());
        let mut cancelled = CancelledNotificationParam::new(Some(id), reason);
        // A server that knows idempotency keys finds the call by its key, also without a session. When the worker stops,
        // another worker makes the call again with the key, and wants its result.
        let context = self
            .context
            .filter(|context| !context.worker_stops.is_cancelled());
        if let Some(context) = context {
            let key = (KEY.to_owned(), context.idempotency_key.clone().into());
            cancelled.meta = Some(JsonObject::from_iter([key]).into());
        }
        let posted = serde_json::to_value(&cancelled).ok();
        let posted = posted.filter(|_| self.posts && context.is_some());
        tokio::spawn(async move {
            let mut told = peer.notify_cancelled(cancelled).await;
            if let Some(params) = posted {
                let custom = CustomNotification::new("notifications/cancelled", Some(params));
                let custom = ClientNotification::CustomNotification(custom);
                told = peer.send_notification(custom).await;
            }
            if let Err(error) = told {
                tracing::debug!(%error, "an MCP server was not told of a cancel");
            }
        });
        tokio::spawn(vital.check());
    }
}

/// The name of the level from which the server tells the lines of its log for a call.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The name of a call's idempotency key.
const KEY: &str = "everturn/idempotency_key";

/// The values for a server that must not learn the caller: ids without a meaning of their own.
const IDS: [&str; 5] = [
    "everturn/conversation_id",
    "everturn/agent_execution_id",
    "everturn/execution_id",
    "everturn/tool_call_id",
    "everturn/depth",
];

/// Returns the metadata of a call: the caller, unless the server must not learn the caller; the ids of the call, for
/// servers that support idempotency keys; and the trace (W3C Trace Context, in MCP's reserved keys).
fn meta(context: &ToolContext, tell_caller: bool) -> RequestMetaObject {
    let of_call = [(KEY.to_owned(), context.idempotency_key.clone())];
    let object: JsonObject = context
        .meta()
        .filter(|(key, _)| tell_caller || IDS.contains(&key.as_str()))
        .chain(of_call)
        .chain(trace::headers())
        .map(|(key, value)| (key, value.into()))
        .collect();
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn a_server_that_need_not_know_is_not_told_for_whom_a_tool_runs() {
        let context = ToolContext {
            tenant_id: "acme".into(),
            owner_id: Some("ann@example.com".into()),
            ..context()
        };
        let told = |tell_caller| serde_json::to_string(&meta(&context, tell_caller)).unwrap();
        let (all, few) = (told(true), told(false));
        assert!(
            all.contains("acme") && all.contains("ann@example.com"),
            "{all}"
        );
        assert!(
            !few.contains("acme") && !few.contains("ann@example.com"),
            "{few}"
        );
        assert!(few.contains("everturn/idempotency_key"), "{few}");
    }
}
