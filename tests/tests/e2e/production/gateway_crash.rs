//! kill -9 of a gateway that has taken a request and not answered it (invariant 9, accepted means durable). A client
//! that repeats the request, to another gateway or to the restarted one, gets the same message and the same turn. The
//! simulation kills gateways at every other moment.
//!
//! The moments are exact without failpoints, because a proxy between that gateway and Temporal holds back what either
//! of them sends.

use everturn_proto::ids;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    proxy::{Passing, Proxy},
    reader::frames::{FrameReader, SseFrame},
    stack::Stack,
    wait,
};
use futures::{StreamExt, future::join_all};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

/// Number of the gateway that is killed. It reaches Temporal through the proxy.
const FRAGILE: usize = 0;
const OTHER: usize = 1;

/// The endpoint that a message is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Messages,
    Chat,
}

/// When the gateway is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The message is stored, and no workflow has been signalled.
    BeforeSignalling,
    /// The turn of the message has ended.
    TurnEnded,
}

impl Moment {
    /// Returns whether a worker runs when the gateway is killed; otherwise one is started afterwards.
    fn has_worker(self) -> bool {
        self == Self::TurnEnded
    }

    fn passing(self) -> Passing {
        if self == Self::BeforeSignalling {
            Passing::Nothing
        } else {
            Passing::Requests
        }
    }
}

/// Where the client sends its own id of the message. Both places have the same effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Body,
    Header,
}

/// One message that is sent to one conversation by one route.
struct Case<'a> {
    stack: &'a Stack,
    route: Route,
    conversation: String,
}

const CONTENT: &str = "What is it?";
const KEY: &str = "the-clients-own-id";

impl Case<'_> {
    fn request(&self, gateway: usize, naming: Naming) -> RequestBuilder {
        let url = format!("{}/api/v1/agent", self.stack.gateway_url(gateway));
        let (url, mut body) = match self.route {
            Route::Messages => (
                format!("{url}/conversations/{}/messages", self.conversation),
                json!({"content": CONTENT}),
            ),
            Route::Chat => (
                format!("{url}/chat"),
                json!({"conversation_id": self.conversation, "message": CONTENT}),
            ),
        };
        let request = reqwest::Client::new().post(url);
        if naming == Naming::Header {
            return request.header("idempotency-key", KEY).json(&body);
        }
        body["message_id"] = KEY.into();
        request.json(&body)
    }

    /// Sends the message, and returns its id from the gateway's answer.
    async fn post(&self, gateway: usize, naming: Naming) -> String {
        accepted(self.request(gateway, naming), self.route)
            .await
            .unwrap()
    }

    /// Waits for the moment at which the gateway is killed, after it has got the request.
    async fn reached(&self, moment: Moment) {
        let stack = self.stack;
        match moment {
            Moment::BeforeSignalling => {
                wait::until("the message is stored", || async {
                    self.is_stored().await.then_some(())
                })
                .await;
                assert_eq!(self.signals().await, 0);
            }
            Moment::TurnEnded => drop(stack.ended(&self.conversation, 1).await),
        }
    }

    /// Returns whether the other gateway says that a message of the conversation is stored and its turn has not ended.
    async fn is_stored(&self) -> bool {
        let url = self.stack.gateway_url(OTHER);
        let url = format!(
            "{url}/api/v1/agent/conversations/{}/execution-status",
            self.conversation
        );
        let status: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        status["is_running"] == true
    }

    /// Returns the number of signals that the conversation's workflow has got; 0 when there is no workflow.
    async fn signals(&self) -> usize {
        let workflow_id = ids::workflow_id(&self.conversation);
        let history = self.stack.temporal.find_history(&workflow_id, "").await;
        let history = history.unwrap_or_default();
        let events = history["events"].as_array().cloned().unwrap_or_default();
        events
            .iter()
            .filter(|event| event["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED")
            .count()
    }
}

/// Sends the request and returns the message's id from the answer. An error means that no answer said that the message
/// was accepted.
async fn accepted(request: RequestBuilder, route: Route) -> Result<String, String> {
    let response = request
        .send()
        .await
        .and_then(reqwest::Response::error_for_status);
    let response = response.map_err(|error| error.to_string())?;
    let answer = match route {
        Route::Messages => response
            .json::<Value>()
            .await
            .map_err(|error| error.to_string())?,
        Route::Chat => {
            frames(response, |frame| frame.event == "conversation")
                .await
                .pop()
                .ok_or("no frame")?
                .data
        }
    };
    Ok(answer["message_id"]
        .as_str()
        .ok_or("no message id")?
        .to_owned())
}

/// Returns the frames of a response, up to the first for which `is_last` is true, or to its end.
async fn frames(response: reqwest::Response, is_last: impl Fn(&SseFrame) -> bool) -> Vec<SseFrame> {
    let (mut frames, mut seen) = (FrameReader::default(), Vec::new());
    let mut chunks = response.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        for frame in frames.push(&chunk).unwrap() {
            let ends = is_last(&frame);
            seen.push(frame);
            if ends {
                return seen;
            }
        }
    }
    seen
}

/// Script of the model: a turn has two steps.
fn script(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I look it up.").call("test_read", &json!({"effect": true})),
        _ => Reply::text("This is it."),
    }
}

/// Runs the case of this moment for both routes.
async fn killed(moment: Moment) {
    join_all([Route::Messages, Route::Chat].map(|route| killed_on(route, moment))).await;
}

/// Kills the gateway at this moment, repeats the request, and checks the turn.
async fn killed_on(route: Route, moment: Moment) {
    let stack = Stack::new(Model::start(script).await)
        .await
        .with_gateways(2);
    let temporal = Proxy::to(stack.temporal.port()).await;
    let address = format!("127.0.0.1:{}", temporal.port());
    let _other = stack.gateway_on(OTHER, &[]).await;
    let fragile = stack
        .gateway_on(FRAGILE, &[("TEMPORAL_ADDRESS", &address)])
        .await;
    let worker = moment.has_worker().then(|| stack.worker());
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let case = Case {
        stack: &stack,
        route,
        conversation,
    };

    temporal.pass(moment.passing());
    let answer = tokio::spawn(accepted(case.request(FRAGILE, Naming::Body), route));
    case.reached(moment).await;
    fragile.kill().await;
    answer
        .await
        .unwrap()
        .expect_err("the gateway has answered before it was killed");

    // The first repeated request goes to the other gateway for one route, and to the restarted gateway for the other.
    let (_fragile, first, second) = if route == Route::Messages {
        let first = case.post(OTHER, Naming::Body).await;
        let fragile = stack.gateway_on(FRAGILE, &[]).await;
        (fragile, first, case.post(FRAGILE, Naming::Body).await)
    } else {
        let fragile = stack.gateway_on(FRAGILE, &[]).await;
        let first = case.post(FRAGILE, Naming::Body).await;
        (fragile, first, case.post(OTHER, Naming::Body).await)
    };
    assert_eq!(first, second);
    let _worker = worker.unwrap_or_else(|| stack.worker());
    case.is_one_turn(&first).await;
}

/// Event types of the message's whole turn.
const TURN: &str = "user_message thought act observe assistant_message complete";

impl Case<'_> {
    /// Asserts that the message with this id has one turn, and that nothing was paid or done twice.
    async fn is_one_turn(&self, message_id: &str) {
        let (stack, conversation) = (self.stack, &self.conversation);
        assert_eq!(types(&stack.ended(conversation, 1).await), TURN);
        stack.workflow_status(conversation, "COMPLETED").await;

        // The client repeats the request after the turn, with its id in the header instead of the body.
        let late = self.request(OTHER, Naming::Header).send().await.unwrap();
        if self.route == Route::Messages {
            let late: Value = late.json().await.unwrap();
            assert_eq!(
                (&late["message_id"], &late["status"]),
                (&json!(message_id), &json!("accepted_before"))
            );
        } else {
            let replayed = frames(late, |_| false).await;
            let sent = replayed
                .iter()
                .find(|frame| frame.event == "conversation")
                .unwrap();
            assert_eq!(sent.data["message_id"], message_id);
            let names: Vec<_> = replayed
                .iter()
                .filter(|frame| frame.id.is_some())
                .map(|frame| frame.event.as_str())
                .collect();
            assert_eq!(names.join(" "), TURN);
        }
        let events = stack.ended(conversation, 1).await;
        assert_eq!(types(&events), TURN);
        let is_own = |event: &Value| event["message_id"] == message_id;
        assert!(events.iter().all(is_own), "{events:#?}");
        assert_eq!(events[0]["event_data"]["content"], CONTENT);
        assert_eq!(
            stack.model.requests().len(),
            2,
            "each step asks the model once"
        );
        assert_eq!(stack.effects().len(), 1);
    }
}

#[tokio::test]
async fn between_storing_and_signalling() {
    killed(Moment::BeforeSignalling).await;
}

#[tokio::test]
async fn after_the_whole_turn_and_before_answering() {
    killed(Moment::TurnEnded).await;
}

#[tokio::test]
async fn between_creating_a_conversation_and_answering() {
    let stack = Stack::new(Model::start(script).await)
        .await
        .with_gateways(2);
    let _other = stack.gateway_on(OTHER, &[]).await;
    let mut fragile = stack.gateway_on(FRAGILE, &[]).await;
    for (made, naming) in [Naming::Body, Naming::Header].into_iter().enumerate() {
        // Here the proxy is between the client and its gateway.
        let network = Proxy::to(stack.gateway_port(FRAGILE)).await;
        network.pass(Passing::Requests);
        let unanswered = tokio::spawn(create(
            format!("http://127.0.0.1:{}", network.port()),
            naming,
        ));
        let mut shown = wait::until("the conversation exists", || async {
            let listed = reqwest::get(format!(
                "{}/api/v1/agent/conversations",
                stack.gateway_url(OTHER)
            ))
            .await
            .unwrap();
            let listed: Value = listed.json().await.unwrap();
            let conversations = listed["conversations"].as_array().unwrap();
            (conversations.len() > made).then(|| conversations[0].clone())
        })
        .await;
        // Only the list says what goes on in it.
        for activity in ["state", "waiting_approvals", "waiting_client_tools"] {
            shown.as_object_mut().unwrap().remove(activity).unwrap();
        }
        fragile.kill().await;
        // Its answer is held back at the proxy, or the gateway died before writing it and the connection ended.
        unanswered.abort();
        if let Ok(answer) = unanswered.await {
            assert!(answer.is_err(), "the client has its answer: {answer:?}");
        }

        assert_eq!(
            create(stack.gateway_url(OTHER), naming).await.unwrap(),
            (200, shown.clone())
        );
        fragile = stack.gateway_on(FRAGILE, &[]).await;
        assert_eq!(
            create(stack.gateway_url(FRAGILE), naming).await.unwrap(),
            (200, shown)
        );
        let listed = stack.get("/conversations").await;
        assert_eq!(
            listed["conversations"].as_array().unwrap().len(),
            made + 1,
            "{listed}"
        );
    }
}

/// Creates a conversation with an id of the client, or with an `Idempotency-Key`.
async fn create(gateway: String, naming: Naming) -> reqwest::Result<(u16, Value)> {
    let request = reqwest::Client::new().post(format!("{gateway}/api/v1/agent/conversations"));
    let request = match naming {
        Naming::Body => request.json(&json!({"id": KEY, "title": "Sums"})),
        Naming::Header => request
            .header("idempotency-key", KEY)
            .json(&json!({"title": "Sums"})),
    };
    let answer = request.send().await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}
