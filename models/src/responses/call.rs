//! One call: asks for the response, reads the response to the end, and reads on after a lost connection.
//!
//! A response in the background has three ways to its end: the stream of its request, a separate stream from any event
//! on, and a plain answer with its state. After any break, the state decides how to go on.

use std::time::Duration;

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    reply::{Events, State, id, reply},
    request::{Mode, body},
    target::Target,
};
use crate::{
    error::ModelError,
    failure::{self, Call as Names},
    port::{ModelReply, ModelRequest, ReplyListener},
    silence::within,
    wire::{AnswerBody, Broken, Frame, Refusal, json},
};

/// The pauses before the next look at a response without new events. The activity's own limit ends the looks.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The most requests in a row for the state of a response, when no answer comes.
const STATE_TRIES: u32 = 4;
/// The most bytes of an answer that is no stream. A response repeats the instructions and the tools of its request.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// One call of a model.
pub(super) struct Call<'a> {
    target: &'a Target,
    request: &'a ModelRequest,
    /// True when the response is made in the background. A call without a name has no background response, because no
    /// later attempt would know it.
    is_background: bool,
    events: Events<'a>,
    /// The response's id, as soon as the provider makes the response in the background.
    id: Option<String>,
}

/// The end of a stream.
enum Read {
    /// The response has ended, as a success or a failure.
    End(Value),
    /// The stream ended before the response. The error is the call's error if no other way leads to the response's end.
    Cut(ModelError),
}

impl<'a> Call<'a> {
    pub(super) fn new(
        target: &'a Target,
        request: &'a ModelRequest,
        listener: &'a mut dyn ReplyListener,
    ) -> Self {
        Self {
            target,
            request,
            is_background: target.is_background && !request.idempotency_key.is_empty(),
            events: Events::new(listener),
            id: None,
        }
    }

    pub(super) async fn run(mut self) -> Result<ModelReply, ModelError> {
        if let Some(attached) = &self.request.attached {
            if let Some(state) = self.usable(attached).await? {
                self.id = Some(attached.clone());
                return match state {
                    State::Ended(response) => self.end(&response),
                    State::Running => {
                        let stream = self.stream_of(attached).await?;
                        self.follow(stream).await
                    }
                };
            }
            self.events.made_again().await?;
        }
        let stream = self.ask().await?;
        self.follow(Some(stream)).await
    }

    /// Returns the state of an earlier attempt's response; `None` when the response gives no reply and the call must be
    /// repeated.
    async fn usable(&self, attached: &str) -> Result<Option<State>, ModelError> {
        let state = self.state(attached).await?;
        let why = match &state {
            None => "the provider no longer has the response".to_owned(),
            Some(State::Running) => return Ok(state),
            Some(State::Ended(response)) => match reply(self.names(), response) {
                Ok(_) => return Ok(state),
                Err(error) => self.target.endpoint.without_secrets(error.message),
            },
        };
        let provider = &self.request.provider;
        tracing::warn!(
            provider,
            response_id = attached,
            why,
            "a response in the background gives no reply, and the call is made and paid again"
        );
        Ok(None)
    }

    /// Asks for a response. A model without thoughts refuses to send thoughts, and gets a second request without them.
    async fn ask(&self) -> Result<Response, ModelError> {
        let model = &self.request.model;
        let profile = self.target.profile(model);
        let mut mode = Mode {
            is_background: self.is_background,
            has_thoughts: self.target.has_thoughts(model),
        };
        loop {
            let mut post = self.target.post(&["responses"]);
            if mode.is_background {
                post = post.header("idempotency-key", self.idempotency_key());
            }
            let body = body(self.request, mode, &profile);
            let answer = self
                .send(self.target.call(post, body, self.request))
                .await?;
            if answer.status().is_success() {
                return Ok(answer);
            }
            let refusal = Refusal::read(self.names(), self.request.silence, answer).await;
            if !(mode.has_thoughts && is_about_thoughts(&refusal)) {
                return Err(refusal.error(self.names()));
            }
            // The provider refused the request, and does not bill it.
            self.target.note_no_thoughts(model);
            mode.has_thoughts = false;
        }
    }

    /// Returns the name of the request: equal in every attempt, but different after a response without a reply.
    fn idempotency_key(&self) -> String {
        let key = &self.request.idempotency_key;
        match &self.request.attached {
            None => key.clone(),
            Some(lost) => format!("{key}-after-{lost}"),
        }
    }

    /// Reads a response to its end: from the given stream, and after a break from further streams.
    pub(super) async fn follow(
        &mut self,
        mut stream: Option<Response>,
    ) -> Result<ModelReply, ModelError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let before = self.events.last();
            let cut = match stream.take() {
                None => None,
                Some(stream) => match self.read(stream).await? {
                    Read::End(response) => return self.end(&response),
                    Read::Cut(error) => Some(error),
                },
            };
            let Some(id) = self.id.clone() else {
                return Err(cut.unwrap_or_else(|| self.stream_cut()));
            };
            if let Some(error) = &cut {
                let provider = &self.request.provider;
                let why = self.target.endpoint.without_secrets(error.message.clone());
                tracing::info!(provider, response_id = id, why, "a response is read again");
                if self.events.last() > before {
                    pause = FIRST_PAUSE;
                }
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
            match self.state(&id).await? {
                None => return Err(self.stream_cut()),
                Some(State::Ended(response)) => return self.end(&response),
                Some(State::Running) => stream = self.stream_of(&id).await?,
            }
            if stream.is_none() {
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }

    /// Reads a stream to the end.
    async fn read(&mut self, stream: Response) -> Result<Read, ModelError> {
        let body = AnswerBody::of(self.names(), self.request.silence, stream)?;
        let mut frames = body.frames();
        loop {
            let end = match frames.next().await {
                Ok(Some(Frame::Data { text, is_whole })) => match json::read(&text) {
                    Ok(event) => self.hear(event).await?,
                    Err(_) if is_whole => {
                        Some(Read::Cut(failure::unreadable_frame(self.names(), &text)))
                    }
                    Err(_) => Some(Read::Cut(self.stream_cut())),
                },
                Ok(Some(Frame::Loose(text))) => self.hear_loose(&text).await?,
                Ok(Some(Frame::Done)) => None,
                Ok(None) => Some(Read::Cut(self.stream_cut())),
                Err(Broken::Lost(error)) => Some(Read::Cut(error)),
                Err(Broken::Unreadable(error)) => return Err(error),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// Takes an event. Returns the end of the stream when the event is the last.
    async fn hear(&mut self, event: Value) -> Result<Option<Read>, ModelError> {
        self.note_id(&event["response"]).await?;
        if failure::is_error(&event) {
            let error = failure::from_body(self.names(), &event);
            // For a response in the background, its state tells whether the response has failed.
            return match self.id {
                Some(_) => Ok(Some(Read::Cut(error))),
                None => Err(error),
            };
        }
        Ok(self.events.hear(event)?.map(Read::End))
    }

    /// Takes the text of a body that is no stream: an error, a whole response, or events without `data:`.
    async fn hear_loose(&mut self, text: &str) -> Result<Option<Read>, ModelError> {
        let Some(values) = json::read_loose(text) else {
            return Ok(Some(Read::Cut(if json::is_cut(text) {
                self.stream_cut()
            } else {
                failure::not_a_stream(self.names(), text, self.events.has_begun())
            })));
        };
        for (value, _) in values {
            let is_response = value["object"] == "response" && value["status"].is_string();
            let end = if is_response {
                self.note_id(&value).await?;
                match State::of(value) {
                    State::Ended(response) => Some(Read::End(response)),
                    State::Running => None,
                }
            } else {
                self.hear(value).await?
            };
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    /// Notes the id of a response in the background, before any piece of the reply is read.
    async fn note_id(&mut self, response: &Value) -> Result<(), ModelError> {
        if self.is_background
            && self.id.is_none()
            && let Some(id) = id(response)
        {
            self.events.accepted(id).await?;
            self.id = Some(id.to_owned());
        }
        Ok(())
    }

    /// Returns a stream of the response from the first unheard event; `None` when the provider offers no stream, as
    /// some minutes after the response's start. The caller then asks for the state until the response has ended.
    async fn stream_of(&self, id: &str) -> Result<Option<Response>, ModelError> {
        let after = self.events.last();
        match self.send(self.target.get_stream(id, after)).await {
            Ok(answer) if answer.status().is_success() => Ok(Some(answer)),
            Ok(answer) => {
                let status = answer.status();
                tracing::info!(response_id = id, %status, "a response cannot be streamed again");
                Ok(None)
            }
            Err(error) if error.is_retryable() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the state of a response, after up to [`STATE_TRIES`] requests; `None` when the provider does not have
    /// the response. A refused request for the state does not mean that the response is refused.
    async fn state(&self, id: &str) -> Result<Option<State>, ModelError> {
        self.state_soon(id).await.map_err(ModelError::accepted)
    }

    async fn state_soon(&self, id: &str) -> Result<Option<State>, ModelError> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..STATE_TRIES {
            match self.state_once(id).await {
                Err(error) if error.is_retryable() => {
                    sleep(error.retry_after.unwrap_or(pause).min(MAX_PAUSE)).await;
                }
                state => return state,
            }
            pause = (pause * 4).min(MAX_PAUSE);
        }
        self.state_once(id).await
    }

    async fn state_once(&self, id: &str) -> Result<Option<State>, ModelError> {
        let answer = self.send(self.target.get(&["responses", id])).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !answer.status().is_success() {
            let refusal = Refusal::read(self.names(), self.request.silence, answer).await;
            return Err(refusal.error(self.names()));
        }
        let body = AnswerBody::of(self.names(), self.request.silence, answer)?;
        let body = body.whole(MAX_BODY_BYTES).await?;
        let response =
            json::read(&body).map_err(|error| failure::unreadable(self.names(), &error))?;
        Ok(Some(State::of(response)))
    }

    fn end(&mut self, response: &Value) -> Result<ModelReply, ModelError> {
        let reply = reply(self.names(), response)?;
        self.events.finish(&reply)?;
        Ok(reply)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ModelError> {
        let sent = within(self.request.silence, request.send()).await?;
        sent.map_err(|error| failure::from_reqwest(self.names(), &error))
    }

    fn names(&self) -> Names<'a> {
        Names {
            provider: &self.request.provider,
            model: &self.request.model,
            advice: self.target.endpoint.advice(),
        }
    }

    fn stream_cut(&self) -> ModelError {
        failure::stream_cut(&self.request.provider)
    }
}

/// True when the provider refuses because the model has no thoughts to send.
fn is_about_thoughts(refusal: &Refusal) -> bool {
    let body: Value = json::read(&refusal.body).unwrap_or_default();
    let error = &body["error"];
    let says = |key: &str, word: &str| error[key].as_str().is_some_and(|it| it.contains(word));
    refusal.status == StatusCode::BAD_REQUEST
        && (says("param", "include") || says("message", "ncrypted content"))
}

/// True when a response cannot be cancelled because it has ended, or because the provider does not know it.
pub(super) fn is_over(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::CONFLICT
    )
}
