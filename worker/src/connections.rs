//! Temporal and the store: connected with back-off, saying what is waited for.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use everturn_proto::words::search_attribute;
use everturn_store::sqlite::{SqliteOptions, SqliteStore};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, envconfig::LoadClientConfigProfileOptions,
};
use temporalio_common::protos::temporal::api::{
    enums::v1::IndexedValueType, operatorservice::v1::AddSearchAttributesRequest,
};
use tokio_util::sync::CancellationToken;

use crate::cli::Common;

/// Between two tries at the most: soon enough to follow a dependency that comes up.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Opens the store, with its schema up to date.
pub async fn store(common: &Common) -> anyhow::Result<SqliteStore> {
    let path = common.database();
    SqliteStore::open(&path, SqliteOptions::default())
        .await
        .with_context(|| format!("cannot open the database {}", path.display()))
}

/// Connects to Temporal as the environment says (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, temporal.toml), waiting for
/// it to come up.
pub async fn temporal(shutdown: &CancellationToken) -> anyhow::Result<Client> {
    let (connection, client) = ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
        .map_err(|error| anyhow!("cannot read Temporal's address from the environment (TEMPORAL_*): {error}"))?;
    let address = connection.target.to_string();
    let connection = connect(connection, &address, shutdown).await?;
    Ok(Client::new(connection, client)?)
}

/// Connects to a Temporal server on loopback.
pub async fn local_temporal(port: u16, shutdown: &CancellationToken) -> anyhow::Result<Client> {
    let address = format!("http://127.0.0.1:{port}");
    let options = ConnectionOptions::new(address.parse::<url::Url>()?).build();
    let connection = connect(options, &address, shutdown).await?;
    Ok(Client::new(connection, ClientOptions::new("default").build())?)
}

async fn connect(
    options: ConnectionOptions,
    address: &str,
    shutdown: &CancellationToken,
) -> anyhow::Result<Connection> {
    let mut wait = Duration::from_millis(100);
    loop {
        let tried = Connection::connect(options.clone()).await;
        let error = match tried {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        // The first tries of a server that starts are no news.
        if wait > Duration::from_secs(1) {
            tracing::warn!(%error, "waiting for Temporal at {address}");
        }
        tokio::select! {
            () = shutdown.cancelled() => bail!("stopped while waiting for Temporal at {address}: {error}"),
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(MAX_BACKOFF);
    }
}

/// Registers the search attributes of turns (A7). Those that exist stay as they are.
pub async fn register_search_attributes(client: &Client) -> anyhow::Result<()> {
    for name in search_attribute::ALL {
        let request = AddSearchAttributesRequest {
            search_attributes: [(name.to_owned(), IndexedValueType::Keyword as i32)].into(),
            namespace: client.options().namespace.clone(),
        };
        let added = client.connection().operator_service().add_search_attributes(tonic::Request::new(request)).await;
        match added {
            Ok(_) => tracing::info!(name, "registered a search attribute"),
            Err(status) if status.code() == tonic::Code::AlreadyExists => {}
            // A cluster may not let workers do this; then its operator has (everturn migrate), or a turn says so.
            Err(status) if status.code() == tonic::Code::PermissionDenied => {
                tracing::warn!(name, "not allowed to register search attributes; an operator must");
            }
            Err(status) => return Err(status).with_context(|| format!("cannot register search attribute {name}")),
        }
    }
    Ok(())
}
