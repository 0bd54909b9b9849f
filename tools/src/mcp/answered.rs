//! Gives an error without a request to the only request that waits. Servers answer so when they cannot read a request: the id is
//! then `null`, or a word of the server. rmcp would drop the error, and the request would wait for ever.
//!
//! Must not be here: answers over streamable HTTP, whose requests have responses of their own (`post.rs`).

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::TxJsonRpcMessage,
    transport::Transport,
};

use super::lenient::{self, Message};

/// A transport that knows the requests without an answer.
pub(super) struct Answered<T> {
    transport: T,
    waiting: Waiting,
}

impl<T> Answered<T> {
    pub(super) fn new(transport: T) -> Self {
        Self {
            transport,
            waiting: Waiting::default(),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Answered<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.waiting.sent(&message);
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<Message> {
        let message = self.transport.receive().await?;
        Some(self.waiting.received(message))
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// The requests without an answer.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<HashSet<RequestId>>>);

impl Waiting {
    fn sent(&self, message: &TxJsonRpcMessage<RoleClient>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            JsonRpcMessage::Request(request) => {
                waiting.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    waiting.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn received(&self, message: Message) -> Message {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let error = match message {
            JsonRpcMessage::Response(response) => {
                take(&mut waiting, &response.id);
                return JsonRpcMessage::Response(response);
            }
            JsonRpcMessage::Error(error) => error,
            message @ (JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_)) => {
                return message;
            }
        };
        if error.id.as_ref().is_some_and(|id| take(&mut waiting, id)) || waiting.len() != 1 {
            return JsonRpcMessage::Error(error);
        }
        match waiting.drain().next() {
            Some(id) => lenient::unreadable(id, &error.error.message),
            None => JsonRpcMessage::Error(error),
        }
    }
}

/// Removes an id, also when the server returned a number as text. Returns false for an unknown id.
fn take(waiting: &mut HashSet<RequestId>, id: &RequestId) -> bool {
    let number = id.to_string().parse().ok().map(RequestId::Number);
    waiting.remove(id) || number.is_some_and(|number| waiting.remove(&number))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, ClientRequest, PingRequest};

    use super::*;

    fn waiting(ids: &[i64]) -> Waiting {
        let waiting = Waiting::default();
        for id in ids {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            waiting.sent(&ClientJsonRpcMessage::request(ping, RequestId::Number(*id)));
        }
        waiting
    }

    fn received(waiting: &Waiting, text: &str) -> String {
        let message = lenient::read(text).messages.remove(0);
        serde_json::to_string(&waiting.received(message)).unwrap()
    }

    #[test]
    fn an_error_without_a_request_is_for_the_only_request() {
        for id in ["null", "\"server-error\"", "9"] {
            let error = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32700,"message":"parse error"}}}}"#
            );
            let one = received(&waiting(&[3]), &error);
            assert!(
                one.contains("\"id\":3") && one.contains("parse error"),
                "{one}"
            );
            let two = received(&waiting(&[3, 4]), &error);
            assert!(
                !two.contains("\"id\":3") && !two.contains("\"id\":4"),
                "{two}"
            );
        }
    }

    #[test]
    fn an_answered_request_waits_no_more() {
        let waiting = waiting(&[3, 4]);
        let answer = received(&waiting, r#"{"jsonrpc":"2.0","id":"3","result":{}}"#);
        assert!(answer.contains("\"id\":\"3\""), "{answer}");
        let own = r#"{"jsonrpc":"2.0","id":4,"error":{"code":7,"message":"no"}}"#;
        assert!(received(&waiting, own).contains("\"code\":7"));
        let stray = r#"{"jsonrpc":"2.0","id":null,"error":{"code":7,"message":"no"}}"#;
        assert!(received(&waiting, stray).contains("\"code\":7"));
    }
}
