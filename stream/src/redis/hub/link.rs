//! A subscriber's connection, used by the hub and by a worker's listener for cancels. The connection is made for the
//! first follower, dropped at the first error, and made again with any number of tries.

use std::{future::pending, time::Duration};

use everturn_proto::LogId;
use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt},
};
use redis::{
    Msg, RedisResult,
    aio::{PubSub, PubSubSink, PubSubStream},
};
use tokio::time::{Instant, sleep_until, timeout};

use crate::redis::{
    address::Address,
    error::Error,
    options::{RedisStreamOptions, backoff},
};

/// A request over this connection. Its conversations come back with the outcome.
#[derive(Debug)]
pub(in crate::redis) enum Request {
    Subscribe(Vec<LogId>),
    Unsubscribe(Vec<LogId>),
    /// A ping. It detects a connection after Redis has gone without a close.
    Ping,
}

/// An event on the connection.
pub(in crate::redis) enum News {
    Connected,
    Message(Msg),
    Done(Request),
    /// The connection is lost or could not be made.
    Lost(Error),
}

pub(in crate::redis) struct Link {
    address: Address,
    /// The time limit for connecting.
    connect_timeout: Duration,
    /// The time limit of a request, such as a subscription to many channels while thousands of readers come back.
    request_timeout: Duration,
    max_backoff: Duration,
    state: State,
    /// The number of failed connection attempts in a row.
    failures: u32,
}

enum State {
    /// No reader has asked to follow yet.
    Idle,
    Down {
        retry_at: Instant,
    },
    Connecting(BoxFuture<'static, Result<PubSub, Error>>),
    Up {
        sink: PubSubSink,
        messages: PubSubStream,
        request: Option<InFlight>,
    },
}

struct InFlight {
    request: Request,
    answer: BoxFuture<'static, Result<(), Error>>,
}

impl Link {
    pub(in crate::redis) fn new(address: Address, options: &RedisStreamOptions) -> Self {
        Self {
            address,
            connect_timeout: options.command_timeout,
            request_timeout: options.follow_timeout,
            max_backoff: options.max_backoff,
            state: State::Idle,
            failures: 0,
        }
    }

    /// Begins to connect at the first call. Fails while Redis is known to be away.
    pub(in crate::redis) fn connect(&mut self) -> Result<(), Error> {
        match self.state {
            State::Idle => self.begin(),
            State::Down { retry_at } => {
                return Err(Error::Away(
                    retry_at.saturating_duration_since(Instant::now()),
                ));
            }
            State::Connecting(_) | State::Up { .. } => {}
        }
        Ok(())
    }

    fn begin(&mut self) {
        let address = self.address.clone();
        let connecting = async move {
            let client = address.client()?;
            client.get_async_pubsub().await.map_err(Error::from)
        };
        self.state = State::Connecting(within(self.connect_timeout, connecting).boxed());
    }

    /// Returns true when a request can be sent.
    pub(in crate::redis) fn is_free(&self) -> bool {
        matches!(self.state, State::Up { request: None, .. })
    }

    /// Sends a request for these channels. Does nothing unless the link is free.
    pub(in crate::redis) fn send(&mut self, asked: Request, channels: Vec<String>) {
        let State::Up {
            sink,
            request: request @ None,
            ..
        } = &mut self.state
        else {
            return;
        };
        let mut sink = sink.clone();
        let answer = match asked {
            Request::Subscribe(_) => async move { sink.subscribe(channels).await }.boxed(),
            Request::Unsubscribe(_) => async move { sink.unsubscribe(channels).await }.boxed(),
            Request::Ping => async move { sink.ping().await }.boxed(),
        };
        let answer = answer.map(|answer: RedisResult<()>| answer.map_err(Error::from));
        *request = Some(InFlight {
            request: asked,
            answer: within(self.request_timeout, answer).boxed(),
        });
    }

    /// Returns the next event. Cancel safe.
    pub(in crate::redis) async fn next(&mut self) -> News {
        if let State::Down { retry_at } = self.state {
            sleep_until(retry_at).await;
            self.begin();
        }
        let news = match &mut self.state {
            State::Idle | State::Down { .. } => pending().await,
            State::Connecting(connecting) => match connecting.await {
                Ok(pubsub) => {
                    let (sink, messages) = pubsub.split();
                    self.state = State::Up {
                        sink,
                        messages,
                        request: None,
                    };
                    self.failures = 0;
                    return News::Connected;
                }
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    News::Lost(error)
                }
            },
            State::Up {
                messages, request, ..
            } => tokio::select! {
                message = messages.next() => message.map_or(News::Lost(Error::Lost), News::Message),
                answer = answered(request.as_mut()) => match (answer, request.take()) {
                    (Ok(()), Some(done)) => News::Done(done.request),
                    (Ok(()), None) => News::Lost(Error::Lost),
                    (Err(error), _) => News::Lost(error),
                },
            },
        };
        if matches!(news, News::Lost(_)) {
            // A working connection that was lost may be made again at once.
            let pause = if self.failures == 0 {
                Duration::ZERO
            } else {
                backoff(self.failures, self.max_backoff)
            };
            self.state = State::Down {
                retry_at: Instant::now() + pause,
            };
        }
        news
    }
}

async fn answered(request: Option<&mut InFlight>) -> Result<(), Error> {
    match request {
        Some(request) => (&mut request.answer).await,
        None => pending().await,
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit, work)
        .await
        .unwrap_or(Err(Error::Timeout(limit)))
}
