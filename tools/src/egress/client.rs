//! The HTTP client that obeys the policy: no proxy, no retry, redirects followed by hand, limits on everything.

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

use super::{
    policy::{EgressPolicy, Refused, Route},
    signature::Signer,
};

/// The most redirects of a request. A service with more redirects is misconfigured.
const MAX_REDIRECTS: usize = 3;
/// The time limit for connecting, TLS included. The rest of a request's time is for the response.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most headers of a response. The HTTP library limits their bytes (about 400 KB).
const MAX_HEADERS: usize = 100;
/// The most connections kept open to a host.
const MAX_IDLE_PER_HOST: usize = 8;

/// Sends requests to destinations that the policy allows. All tools of a worker share a client, because the client
/// pools connections.
#[derive(Clone)]
pub struct Egress {
    policy: Arc<EgressPolicy>,
    /// The client for hosts that are allowed by name.
    allowed: Client,
    /// The client that connects only to addresses that the policy allows.
    checked: Client,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The destination.
    pub url: Url,
    /// The headers, secrets included. A redirect to a different origin drops all headers.
    pub headers: HeaderMap,
    /// Adds signed headers about the caller. A redirect to a different origin drops the signer, too.
    pub signer: Option<Signer>,
    /// The body: JSON, unless the headers declare a different type.
    pub body: Option<String>,
    /// The time limit for the request, with redirects and the response body.
    pub timeout: Duration,
    /// The most bytes read of the response body.
    pub max_response_bytes: usize,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, up to the limit.
    pub body: Vec<u8>,
    /// True when the body was longer than the limit.
    pub is_cut: bool,
}

/// The reason for a missing response, as a sentence for the model.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The policy refuses the destination.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// A redirect that is not followed.
    #[error("{0}")]
    Redirect(String),
    /// The connection failed, and no data was sent.
    #[error("`{host}` cannot be reached: {reason}.")]
    Unreachable {
        /// The host.
        host: String,
        /// The innermost reason.
        reason: String,
    },
    /// The connection broke or the time ran out. The service may have carried out the request.
    #[error("`{host}` did not answer: {reason}.")]
    NoAnswer {
        /// The host.
        host: String,
        /// The innermost reason.
        reason: String,
    },
}

impl Egress {
    /// Creates a client for this policy, with the system's resolver.
    pub fn new(policy: EgressPolicy) -> Result<Self, reqwest::Error> {
        Self::with_resolver(policy, Arc::new(System))
    }

    /// Creates a client for this policy, with a custom resolver.
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

    /// Sends a request and follows redirects within the time limit.
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

    /// Sends a request without following redirects, because its secrets are for a single receiver. A URL with the
    /// origin of `configured` needs no permission, because the operator has configured the origin.
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
        // A proxy would resolve names again, to unchecked addresses.
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

/// Returns the target of a redirect, if the response is a redirect.
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
        EgressError::Redirect("The service redirected to an invalid URL.".to_owned())
    })
}

/// Returns the next request of a redirect. Only a GET may go to a different origin, and without headers, because they
/// hold secrets.
fn redirected(request: Outgoing, status: StatusCode, target: Url) -> Result<Outgoing, EgressError> {
    let is_elsewhere = target.origin() != request.url.origin();
    let mut next = Outgoing {
        url: target,
        ..request
    };
    // Like browsers: a POST becomes a GET, unless the status requires a repeated POST.
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

/// Reads the body piece by piece, up to the limit.
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

/// A resolver that refuses a name if any address is refused, because the choice between the addresses is random.
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
