//! Opens the store at a URL. Only this module selects the database.

use std::{path::Path, sync::Arc};

use crate::{
    api::{
        AgentExecutions, AuditTrail, Backlogs, Blobs, ConnectionUsage, Consents, Conversations,
        EventReader, EventWriter, Failures, Keys, LeftOut, LostWorkers, MessageQueue, ModelCalls,
        NewAuditEntry, OutsideTools, Owners, PastCalls, Reconciliation, Result, Retention,
        StepClaims, TenantUsage, Tenants, ToolClaims, ToolResults, TraceContexts, TurnInputs,
        TurnResults, Turns, WorkerLeases,
    },
    error::StoreError,
    peer::Peer,
    postgres::{PostgresOptions, PostgresStore},
    sqlite::{SqliteOptions, SqliteStore},
};

/// A store in any database, as one object per trait. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    /// Reads the event log, for gateways.
    pub events: Arc<dyn EventReader>,
    /// Conversations, for gateways.
    pub conversations: Arc<dyn Conversations>,
    /// Messages that wait for a turn, for gateways.
    pub messages: Arc<dyn MessageQueue>,
    /// Begins turns, for workers.
    pub turns: Arc<dyn Turns>,
    /// Reads the inputs of turns, for workers.
    pub inputs: Arc<dyn TurnInputs>,
    /// The claims and replies of steps, for workers.
    pub steps: Arc<dyn StepClaims>,
    /// Model calls until their replies, for workers.
    pub model_calls: Arc<dyn ModelCalls>,
    /// The claims and ends of tool executions, for workers.
    pub tool_claims: Arc<dyn ToolClaims>,
    /// Writes the event log, for workers.
    pub writer: Arc<dyn EventWriter>,
    /// Approvals and the results of client tools, for gateways.
    pub outside: Arc<dyn OutsideTools>,
    /// Reads the trees of agent executions, for gateways.
    pub executions: Arc<dyn AgentExecutions>,
    /// Reads the results of turns, for gateways.
    pub turn_results: Arc<dyn TurnResults>,
    /// Reads failed agent executions across conversations, for gateways and operators.
    pub failures: Arc<dyn Failures>,
    /// Reads past LLM calls, for gateways.
    pub past_calls: Arc<dyn PastCalls>,
    /// Reads the whole results of tool executions, for gateways and workers.
    pub results: Arc<dyn ToolResults>,
    /// Finds accepted messages and turns that have not ended, for gateways.
    pub reconciliation: Arc<dyn Reconciliation>,
    /// Counts the waiting work of every tenant, for metrics of gateways.
    pub backlogs: Arc<dyn Backlogs>,
    /// The leases of live worker processes, for workers.
    pub leases: Arc<dyn WorkerLeases>,
    /// Finds lost workers, for gateways.
    pub lost_workers: Arc<dyn LostWorkers>,
    /// The tools that workers leave out of requests, for workers and gateways.
    pub left_out: Arc<dyn LeftOut>,
    /// Removes old conversations, for operators.
    pub retention: Arc<dyn Retention>,
    /// API keys and browser sessions, for gateways and operators.
    pub keys: Arc<dyn Keys>,
    /// Owners with refused credentials, for gateways.
    pub owners: Arc<dyn Owners>,
    /// Consents of people to the use of tool servers, for gateways and workers.
    pub consents: Arc<dyn Consents>,
    /// Reads the usage of tenants, for gateways and operators.
    pub usage: Arc<dyn TenantUsage>,
    /// The audit trail, for gateways and operators.
    pub audit: Arc<dyn AuditTrail>,
    /// Reads about tenants, for gateways.
    pub tenants: Arc<dyn Tenants>,
    /// The traces of turns, for gateways and workers.
    pub traces: Arc<dyn TraceContexts>,
    /// The rows of blobs, for gateways and workers by way of [`BlobFiles`](crate::BlobFiles).
    pub blobs: Arc<dyn Blobs>,
    /// Counts the connections of the store, for metrics.
    pub connections: Arc<dyn ConnectionUsage>,
}

impl Store {
    /// Makes the store of any back end.
    pub fn new(
        store: impl EventReader
        + Conversations
        + MessageQueue
        + Turns
        + TurnInputs
        + StepClaims
        + ModelCalls
        + ToolClaims
        + EventWriter
        + OutsideTools
        + AgentExecutions
        + TurnResults
        + PastCalls
        + ToolResults
        + Reconciliation
        + Backlogs
        + WorkerLeases
        + LostWorkers
        + LeftOut
        + Retention
        + Keys
        + Owners
        + Consents
        + TenantUsage
        + Failures
        + AuditTrail
        + Tenants
        + TraceContexts
        + Blobs
        + ConnectionUsage
        + 'static,
    ) -> Self {
        let store = Arc::new(store);
        Self {
            events: store.clone(),
            conversations: store.clone(),
            messages: store.clone(),
            turns: store.clone(),
            inputs: store.clone(),
            steps: store.clone(),
            model_calls: store.clone(),
            tool_claims: store.clone(),
            writer: store.clone(),
            outside: store.clone(),
            executions: store.clone(),
            turn_results: store.clone(),
            past_calls: store.clone(),
            results: store.clone(),
            reconciliation: store.clone(),
            backlogs: store.clone(),
            leases: store.clone(),
            lost_workers: store.clone(),
            left_out: store.clone(),
            retention: store.clone(),
            keys: store.clone(),
            owners: store.clone(),
            consents: store.clone(),
            usage: store.clone(),
            audit: store.clone(),
            failures: store.clone(),
            tenants: store.clone(),
            traces: store.clone(),
            blobs: store.clone(),
            connections: store,
        }
    }
}

/// The options of every database for opening a store.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// Options for SQLite, a store in a file.
    pub sqlite: SqliteOptions,
    /// Options for PostgreSQL, a store on a server.
    pub postgres: PostgresOptions,
    /// The minimum retention of the audit entries that the store writes by itself, in days. Default
    /// [`NewAuditEntry::DEFAULT_KEEP_DAYS`].
    pub audit_keep_days: Option<u32>,
}

impl StoreOptions {
    fn keep_days(&self) -> u32 {
        self.audit_keep_days
            .unwrap_or(NewAuditEntry::DEFAULT_KEEP_DAYS)
    }
}

/// Opens the store at `url`. `postgres://…` (or `postgresql://…`) is a server, and its tables must be up to date.
/// `sqlite://<path>` or a bare path is a file, which is created and migrated as needed.
pub async fn connect(url: &str, options: StoreOptions) -> Result<Store> {
    let keep_days = options.keep_days();
    Ok(match Location::of(url)? {
        Location::Postgres => {
            let store = PostgresStore::connect(url, options.postgres).await?;
            Store::new(store.keeping_audit(keep_days))
        }
        Location::Sqlite(path) => {
            let store = SqliteStore::open(path, options.sqlite).await?;
            Store::new(store.keeping_audit(keep_days))
        }
    })
}

/// Creates or updates the tables at `url`.
pub async fn migrate(url: &str, options: StoreOptions) -> Result<()> {
    match Location::of(url)? {
        Location::Postgres => PostgresStore::migrate(url).await,
        Location::Sqlite(path) => {
            SqliteStore::open(path, options.sqlite).await?.close().await;
            Ok(())
        }
    }
}

/// Checks a database URL without connecting.
pub fn check_url(url: &str) -> Result<()> {
    match Location::of(url)? {
        Location::Postgres => PostgresOptions::check_url(url),
        Location::Sqlite(_) => Ok(()),
    }
}

/// Returns the other end for a URL, without connecting.
pub fn peer(url: &str) -> Result<Peer> {
    match Location::of(url)? {
        Location::Postgres => PostgresOptions::peer(url),
        Location::Sqlite(_) => Ok(Peer::Local),
    }
}

/// The location of a store, from its URL.
#[derive(Debug, PartialEq, Eq)]
enum Location<'a> {
    Postgres,
    Sqlite(&'a Path),
}

impl<'a> Location<'a> {
    fn of(url: &'a str) -> Result<Self> {
        let location = match url.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Self::Postgres,
            Some(("sqlite", path)) => Self::Sqlite(Path::new(path)),
            None => Self::Sqlite(Path::new(url)),
            Some((scheme, _)) => {
                let known = "postgres://…, sqlite://<path> or a path";
                return Err(StoreError::Conflict(format!(
                    "there is no store at {scheme}://…; it may be {known}"
                )));
            }
        };
        match location {
            Self::Sqlite(path) if path.as_os_str().is_empty() => {
                Err(StoreError::Conflict("the store's URL names no file".into()))
            }
            location => Ok(location),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Location, Path, Peer, peer};

    #[test]
    fn the_url_says_who_answers() {
        let server = |host: &str, sslmode| {
            Some(Peer::Server {
                host: host.to_owned(),
                sslmode,
            })
        };
        let cases = [
            ("everturn.db", Some(Peer::Local)),
            ("postgres://u@%2Frun%2Fpostgresql/db", Some(Peer::Local)),
            ("postgres:///db?host=/run/postgresql", Some(Peer::Local)),
            (
                "postgres://u:p@db.example/e",
                server("db.example", "prefer"),
            ),
            ("postgres://[::1]:5432/e", server("::1", "prefer")),
            (
                "postgres://db/e?sslmode=verify-full",
                server("db", "verify-full"),
            ),
            // The last one holds, wherever the first one leads.
            (
                "postgres://localhost/e?sslmode=require&host=db.example",
                server("db.example", "require"),
            ),
            (
                "postgres://localhost/e?ssl-mode=allow&hostaddr=10.0.0.1",
                server("10.0.0.1", "allow"),
            ),
            ("postgres://db/e?sslmode=perhaps", None),
            ("mysql://db/e", None),
        ];
        for (url, expected) in cases {
            assert_eq!(peer(url).ok(), expected, "{url}");
        }
    }

    #[test]
    fn the_url_says_which_database() {
        let file = |path: &'static str| Some(Location::Sqlite(Path::new(path)));
        let cases = [
            (
                "postgres://user:secret@host/db?sslmode=require",
                Some(Location::Postgres),
            ),
            ("postgresql://host/db", Some(Location::Postgres)),
            (
                "sqlite:///var/lib/everturn.db",
                file("/var/lib/everturn.db"),
            ),
            ("sqlite://everturn.db", file("everturn.db")),
            ("/var/lib/everturn.db", file("/var/lib/everturn.db")),
            ("data/everturn.db", file("data/everturn.db")),
            ("mysql://user:secret@host/db", None),
            ("sqlite://", None),
            ("", None),
        ];
        for (url, expected) in cases {
            let location = Location::of(url);
            assert!(
                location
                    .as_ref()
                    .err()
                    .is_none_or(|error| !error.to_string().contains("secret")),
                "{url}"
            );
            assert_eq!(location.ok(), expected, "{url}");
        }
    }
}
