//! The HTTP client that obeys the policy: no proxy, no retry, redirects followed by hand, everything bounded.

use std::{
    error::Error as StdError,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use reqwest::{
    Client, Method, Response, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
    redirect, retry,
};

use super::{EgressPolicy, Refused, Route, signature::Signer};

/// Redirects of one request: a service that needs more is misconfigured.
const MAX_REDIRECTS: usize = 3;
/// The time to connect, TLS included; the rest of a request's time is for the answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Headers of an answer. The HTTP library bounds their bytes (about 400 KB).
const MAX_HEADERS: usize = 100;
/// Connections kept open to one host.
const MAX_IDLE_PER_HOST: usize = 8;

/// Sends requests where the policy lets them go. One for all tools of a worker: it pools connections.
#[derive(Clone)]
pub struct Egress {
    policy: Arc<EgressPolicy>,
    /// The client for hosts that are allowed by name.
    allowed: Client,
    /// Connects to nothing that the policy refuses.
    checked: Client,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Its method.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Headers, secrets among them. A redirect to another origin leaves all of them behind.
    pub headers: HeaderMap,
    /// Says for whom the request is, and proves it. A redirect to another origin leaves it behind, too.
    pub signer: Option<Signer>,
    /// JSON, unless the headers say what it is.
    pub body: Option<String>,
    /// The time for everything, redirects and the body of the answer included.
    pub timeout: Duration,
    /// What is read of the answer's body.
    pub max_response_bytes: usize,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, up to the limit.
    pub body: Vec<u8>,
    /// True when there was more of the body.
    pub is_cut: bool,
}

/// Why there is no answer. Sentences for the model.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The policy refuses it, or a redirect cannot be followed.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// A redirect that is not followed.
    #[error("{0}")]
    Redirect(String),
    /// There was no connection: nothing was sent.
    #[error("`{host}` cannot be reached: {reason}.")]
    Unreachable {
        /// The host.
        host: String,
        /// The innermost reason.
        reason: String,
    },
    /// The connection broke, or time ran out. The request may have been carried out.
    #[error("`{host}` did not answer: {reason}.")]
    NoAnswer {
        /// The host.
        host: String,
        /// The innermost reason.
        reason: String,
    },
}

impl Egress {
    /// A client of this policy, on the system's resolver.
    pub fn new(policy: EgressPolicy) -> Result<Self, reqwest::Error> {
        Self::with_resolver(policy, Arc::new(System))
    }

    /// A client of this policy on another resolver.
    pub fn with_resolver(
        policy: EgressPolicy,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, reqwest::Error> {
        let policy = Arc::new(policy);
        let checking = Checking {
            policy: Arc::clone(&policy),
            resolver: Arc::clone(&resolver),
        };
        Ok(Self {
            allowed: client(resolver)?,
            checked: client(Arc::new(checking))?,
            policy,
        })
    }

    /// Sends a request and follows its redirects, within its time.
    pub async fn send(&self, request: Outgoing) -> Result<Incoming, EgressError> {
        let deadline = Instant::now() + request.timeout;
        let mut request = request;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(&request, deadline).await?;
            let Some(target) = redirect_target(&request.url, &response)? else {
                return read(response, request.max_response_bytes).await;
            };
            request = redirected(request, response.status(), target)?;
        }
        Err(EgressError::Redirect(format!(
            "The service redirected more than {MAX_REDIRECTS} times."
        )))
    }

    /// Sends a request and follows no redirect: what it holds is for one receiver. An address at the origin of `configured`,
    /// which the operator has written, need not be allowed.
    pub async fn send_directly(
        &self,
        request: &Outgoing,
        configured: Option<&Url>,
    ) -> Result<Incoming, EgressError> {
        let deadline = Instant::now() + request.timeout;
        let route = match configured {
            Some(configured) if configured.origin() == request.url.origin() => Route::Allowed,
            _ => self.policy.check_url(&request.url)?,
        };
        let response = self.send_by(route, request, deadline).await?;
        read(response, request.max_response_bytes).await
    }

    async fn send_once(
        &self,
        request: &Outgoing,
        deadline: Instant,
    ) -> Result<Response, EgressError> {
        let route = self.policy.check_url(&request.url)?;
        self.send_by(route, request, deadline).await
    }

    async fn send_by(
        &self,
        route: Route,
        request: &Outgoing,
        deadline: Instant,
    ) -> Result<Response, EgressError> {
        let client = match route {
            Route::Allowed => &self.allowed,
            Route::Checked => &self.checked,
        };
        let mut headers = request.headers.clone();
        if let Some(signer) = &request.signer {
            let body = request.body.as_deref();
            signer.sign(
                &mut headers,
                &request.method,
                &request.url,
                body,
                SystemTime::now(),
            );
        }
        if request.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            headers.entry(CONTENT_TYPE).or_insert(json);
        }
        let mut sending = client
            .request(request.method.clone(), request.url.clone())
            .headers(headers)
            .timeout(deadline.saturating_duration_since(Instant::now()));
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        sending.send().await.map_err(|error| failed(&error))
    }
}

fn client(resolver: Arc<dyn Resolve>) -> Result<Client, reqwest::Error> {
    Client::builder()
        .dns_resolver(resolver)
        // A proxy would resolve names again, and those addresses would not be checked.
        .no_proxy()
        .redirect(redirect::Policy::none())
        // The engine retries.
        .retry(retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .http1_max_headers(MAX_HEADERS)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .user_agent(concat!("everturn/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Where the answer sends us, when it does.
fn redirect_target(from: &Url, response: &Response) -> Result<Option<Url>, EgressError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let target = location
        .to_str()
        .ok()
        .and_then(|location| from.join(location).ok());
    target.map(Some).ok_or_else(|| {
        EgressError::Redirect("The service redirected to what is no URL.".to_owned())
    })
}

/// The next request of a redirect. To another origin only a GET goes, and takes no headers with it: they hold secrets.
fn redirected(request: Outgoing, status: StatusCode, target: Url) -> Result<Outgoing, EgressError> {
    let is_elsewhere = target.origin() != request.url.origin();
    let mut next = Outgoing {
        url: target,
        ..request
    };
    // As browsers do: a POST becomes a GET, unless the status says to repeat it.
    if status == StatusCode::SEE_OTHER
        || (next.method == Method::POST && matches!(status.as_u16(), 301 | 302))
    {
        next.method = Method::GET;
        next.body = None;
    }
    if is_elsewhere {
        if next.method != Method::GET {
            let message = format!(
                "The service redirected to another host, which a {} does not follow.",
                next.method
            );
            return Err(EgressError::Redirect(message));
        }
        next.headers.clear();
        next.signer = None;
    }
    Ok(next)
}

/// Reads the body as it comes, to the limit.
async fn read(mut response: Response, max_bytes: usize) -> Result<Incoming, EgressError> {
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
        let room = max_bytes - body.len();
        is_cut = piece.len() > room;
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if is_cut {
            break;
        }
    }
    Ok(Incoming {
        status,
        headers,
        body,
        is_cut,
    })
}

fn failed(error: &reqwest::Error) -> EgressError {
    let mut inner: &(dyn StdError + 'static) = error;
    loop {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return EgressError::Refused(refused.clone());
        }
        match inner.source() {
            Some(source) => inner = source,
            None => break,
        }
    }
    let host = error
        .url()
        .and_then(Url::host_str)
        .unwrap_or("the service")
        .to_owned();
    let reason = if error.is_timeout() {
        "it took too long".to_owned()
    } else {
        inner.to_string()
    };
    if error.is_connect() || error.is_builder() {
        EgressError::Unreachable { host, reason }
    } else {
        EgressError::NoAnswer { host, reason }
    }
}

/// The system's resolver.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(addresses.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// A resolver that refuses a name when one of its addresses is refused: which of them is connected to is chance.
struct Checking {
    policy: Arc<EgressPolicy>,
    resolver: Arc<dyn Resolve>,
}

impl Resolve for Checking {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.policy);
        let host = name.as_str().to_owned();
        let resolving = self.resolver.resolve(name);
        Box::pin(async move {
            let addresses: Vec<_> = resolving.await?.collect();
            for address in &addresses {
                policy.check_address(address.ip(), &host)?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
