//! Connects to Temporal and the store with back-off, and logs the service that the process waits for.

use std::{
    error::Error,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use everturn_codec::Codec;
use everturn_config::CodecConfig;
use everturn_gateway::turns::RegisterError;
use everturn_store::{PostgresOptions, Store, StoreError, StoreOptions};
use everturn_stream::{
    CancelNews, InProcessStream, RedisStream, RedisStreamOptions, SharedCounts, StreamReader,
    StreamWriter,
};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression,
    envconfig::LoadClientConfigProfileOptions,
    tonic::{Code, Status},
};
use temporalio_common::envconfig::{ClientConfigTLS, load_client_config_profile};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Common,
    telemetry::Telemetry,
    transport::{self, certificates},
};

/// The shortest pause between two attempts.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// The longest pause between two attempts. A longer pause would delay the start after a server is back.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// A longer wait than a server's usual start is logged.
const NEWSWORTHY_WAIT: Duration = Duration::from_secs(1);
/// The time in which a server on this machine must answer. A listener that does not answer in this time is not
/// Temporal.
const LOCAL_LIMIT: Duration = Duration::from_secs(60);

/// The stream of live texts, by its users.
#[derive(Clone)]
pub struct Stream {
    /// Workers write live texts.
    pub writer: Arc<dyn StreamWriter>,
    /// Workers receive cancels.
    pub cancels: Arc<dyn CancelNews>,
    /// Gateways read live texts.
    pub reader: Arc<dyn StreamReader>,
    /// Gateways share their counters; `None` when the installation has a single gateway.
    pub counts: Option<Arc<dyn SharedCounts>>,
    /// True when announcements of workers in other processes arrive.
    pub is_shared: bool,
}

/// Returns the stream of this process: Redis if configured, otherwise memory. While Redis is away, readers get events
/// and whole texts. Live texts continue when Redis is back.
pub fn stream(common: &Common) -> anyhow::Result<Stream> {
    let Some(url) = &common.redis else {
        let stream = Arc::new(InProcessStream::default());
        return Ok(Stream {
            writer: stream.clone(),
            cancels: stream.clone(),
            reader: stream,
            counts: None,
            is_shared: false,
        });
    };
    transport::check_redis(common)?;
    let options = RedisStreamOptions {
        installation: installation(common),
        ..RedisStreamOptions::default()
    };
    let stream = RedisStream::connect(url, options)
        .with_context(|| format!("cannot use the Redis at {}", without_password(url)))?;
    let stream = Arc::new(stream);
    Ok(Stream {
        writer: stream.clone(),
        cancels: stream.clone(),
        reader: stream.clone(),
        counts: Some(stream),
        is_shared: true,
    })
}

/// Returns the name of the installation, which separates installations on a shared Redis: the task queue and the name
/// of the database. The rest of the database's address may differ from process to process.
fn installation(common: &Common) -> String {
    let database = common.database();
    let name = match database.parse::<url::Url>() {
        Ok(url) => url.path().to_owned(),
        Err(_) => database,
    };
    format!("{} {name}", common.task_queue)
}

/// The connections of a worker and a gateway.
pub struct Connected {
    /// Temporal, with the search attributes registered.
    pub client: Client,
    /// The database.
    pub store: Store,
    /// The live texts.
    pub stream: Stream,
}

/// Connects to all services, waits for services that are away, and reports the awaited service to probes.
pub async fn everything(
    common: &Common,
    options: StoreOptions,
    codec: &CodecConfig,
    telemetry: &Telemetry,
    shutdown: &CancellationToken,
) -> anyhow::Result<Connected> {
    // Errors in the keys must appear before the process waits for a service.
    let codec = codec.codec()?;
    check(common)?;
    telemetry.waits_for("the database");
    let store = store(common, options, shutdown).await?;
    telemetry.waits_for("Temporal");
    let client = with_codec(temporal(common, shutdown).await?, codec.as_ref());
    register_search_attributes(&client, shutdown).await?;
    Ok(Connected {
        client,
        store,
        stream: stream(common)?,
    })
}

/// Checks all connections of a role before the first connection is made.
pub(crate) fn check(common: &Common) -> anyhow::Result<()> {
    transport::check_database(common)?;
    transport::check_redis(common)?;
    temporal_options(common)?;
    Ok(())
}

/// Opens the store, and waits for a server that is away. Creates and migrates a SQLite file. The tables of a database
/// server must be up to date already (`everturn migrate`).
pub async fn store(
    common: &Common,
    options: StoreOptions,
    shutdown: &CancellationToken,
) -> anyhow::Result<Store> {
    transport::check_database(common)?;
    let database = common.database();
    retry_with_back_off("the database", shutdown, StoreError::is_retryable, || {
        everturn_store::connect(&database, options.clone())
    })
    .await
    .with_context(|| format!("cannot open the database {}", without_password(&database)))
}

/// Opens the store with a single connection, for a command that makes its calls in sequence.
pub async fn store_of_command(
    common: &Common,
    shutdown: &CancellationToken,
) -> anyhow::Result<Store> {
    let one_connection = PostgresOptions {
        max_connections: 1,
        ..PostgresOptions::default()
    };
    let options = StoreOptions {
        postgres: one_connection,
        ..StoreOptions::default()
    };
    store(common, options, shutdown).await
}

/// Creates the tables, or migrates them.
pub async fn migrate_store(common: &Common, shutdown: &CancellationToken) -> anyhow::Result<()> {
    transport::check_database(common)?;
    let database = common.database();
    retry_with_back_off("the database", shutdown, StoreError::is_retryable, || {
        everturn_store::migrate(&database, StoreOptions::default())
    })
    .await
    .with_context(|| {
        format!(
            "cannot prepare the database {}",
            without_password(&database)
        )
    })
}

/// Returns a URL without its password. A path stays unchanged.
pub fn without_password(url: &str) -> String {
    match url.parse::<url::Url>() {
        Ok(mut url) if url.password().is_some() => {
            // `set_password` fails only for a URL that cannot have a password.
            let _has_one = url.set_password(Some("***"));
            url.to_string()
        }
        Ok(_) => url.to_owned(),
        // A URL that cannot be parsed may have a password anywhere.
        Err(_) => match url.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://***"),
            None => url.to_owned(),
        },
    }
}

/// Repeats `call` until it succeeds, or fails with an error that waiting cannot repair. Logs the awaited service.
async fn retry_with_back_off<T, E, F>(
    what: &str,
    shutdown: &CancellationToken,
    is_passing: impl Fn(&E) -> bool,
    mut call: impl FnMut() -> F,
) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
    F: Future<Output = Result<T, E>>,
{
    let mut wait = MIN_BACKOFF;
    loop {
        match call().await {
            Err(error) if is_passing(&error) => {
                // The first attempts are not logged, because a server may just be starting.
                if wait > NEWSWORTHY_WAIT {
                    tracing::warn!(error = with_causes(&error), "waiting for {what}");
                }
                tokio::select! {
                    () = shutdown.cancelled() => bail!("stopped while waiting for {what}: {error}"),
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(MAX_BACKOFF);
            }
            answer => return Ok(answer?),
        }
    }
}

/// Returns the error and the causes in a single line. Often, only the last cause says what to do.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Connects to the Temporal server of the environment, and waits while it is away.
pub async fn temporal(common: &Common, shutdown: &CancellationToken) -> anyhow::Result<Client> {
    let (mut connection, client, written) = temporal_options(common)?;
    let address = connection.target.to_string();
    certificates::read_anew(&mut connection, written.as_ref())?;
    let connection = connect(connection, &address, None, shutdown).await?;
    Ok(Client::new(connection, client)?)
}

/// Returns the client with a codec, which encrypts outgoing payloads and decrypts incoming ones.
pub fn with_codec(mut client: Client, codec: Option<&Codec>) -> Client {
    if let Some(codec) = codec {
        client.options_mut().data_converter = codec.converter();
    }
    client
}

/// Describes the environment's settings for Temporal (TEMPORAL_*, temporal.toml) for people. Connects to no server.
pub fn describe_temporal(common: &Common) -> anyhow::Result<String> {
    let (connection, client, written) = temporal_options(common)?;
    let tls = match (&connection.tls_options, &connection.api_key) {
        (Some(_), Some(_)) => "TLS and an API key",
        (Some(tls), None) if tls.client_tls_options.is_some() => "TLS and a client certificate",
        (Some(_), None) => "TLS",
        (None, Some(_)) => "an API key, and no TLS",
        (None, None) => "no TLS",
    };
    certificates::read_anew(&mut connection.clone(), written.as_ref())?;
    Ok(format!(
        "{}, namespace {}, {tls}",
        connection.target, client.namespace
    ))
}

/// Returns the environment's settings for Temporal, and the TLS settings as written. Refuses connections that an
/// attacker could read or answer.
pub(crate) fn temporal_options(
    common: &Common,
) -> anyhow::Result<(ConnectionOptions, ClientOptions, Option<ClientConfigTLS>)> {
    let unreadable = |error| {
        anyhow!("cannot read Temporal's address from the environment (TEMPORAL_*): {error}")
    };
    let (mut connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
            .map_err(unreadable)?;
    let profile = load_client_config_profile(LoadClientConfigProfileOptions::default(), None);
    let written = profile.map_err(unreadable)?.tls;
    transport::check_temporal(common, &mut connection)?;
    Ok((connection, client, written))
}

/// Connects to a Temporal server on loopback.
pub async fn local_temporal(port: u16, shutdown: &CancellationToken) -> anyhow::Result<Client> {
    let address = format!("http://127.0.0.1:{port}");
    let options = ConnectionOptions::new(address.parse::<url::Url>()?).build();
    let connection = connect(options, &address, Some(LOCAL_LIMIT), shutdown).await?;
    Ok(Client::new(
        connection,
        ClientOptions::new("default").build(),
    )?)
}

async fn connect(
    mut options: ConnectionOptions,
    address: &str,
    limit: Option<Duration>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Connection> {
    // Payloads are small, because texts go by reference. Compression would cost the client and the server more than it saves.
    options.grpc_compression = GrpcCompression::None;
    let started = Instant::now();
    let is_passing = |_: &_| limit.is_none_or(|limit| started.elapsed() <= limit);
    let what = format!("Temporal at {address}");
    let connected = retry_with_back_off(&what, shutdown, is_passing, || {
        Connection::connect(options.clone())
    })
    .await;
    if shutdown.is_cancelled() {
        return connected;
    }
    connected.with_context(|| {
        format!("what listens on {address} does not answer like a Temporal server")
    })
}

/// Registers the search attributes of turns, and waits while Temporal is away. Existing attributes stay unchanged.
pub async fn register_search_attributes(
    client: &Client,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let is_passing = |error: &RegisterError| is_away(&error.status);
    let registered = retry_with_back_off("Temporal", shutdown, is_passing, || {
        everturn_gateway::turns::register_search_attributes(client)
    });
    tokio::select! {
        // The client itself retries each call for half a minute.
        () = shutdown.cancelled() => bail!("stopped while waiting for Temporal"),
        registered = registered => registered.with_context(|| {
            let namespace = &client.options().namespace;
            format!("cannot prepare the namespace {namespace} (TEMPORAL_NAMESPACE)")
        }),
    }
}

/// True when Temporal did not answer, or cannot answer now. False when Temporal refused the call, and would refuse it
/// again.
pub(crate) fn is_away(answer: &Status) -> bool {
    !matches!(
        answer.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::Unimplemented
    )
}
