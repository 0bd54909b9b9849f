//! Worker and gateway processes of one test, with a database, a configuration and a task queue of their own.
//!
//! - `processes`: starts, kills and ends the processes
//! - `conversations`: sends requests to the gateway, and waits for conditions

mod conversations;
mod processes;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use everturn_proto::words::{DEFAULT_TENANT, FailureCode};
use everturn_store::{Access, Store, StoreOptions, TurnFailure};
use sqlx::{Row, sqlite::SqliteConnectOptions, sqlite::SqlitePool};
use tempfile::TempDir;

use crate::{
    backends::Backends,
    http,
    model::Model,
    postgres::Postgres,
    redis::Redis,
    temporal::{self, Temporal, free_port},
};

pub use self::{
    conversations::{HistorySize, frames_until},
    processes::{Process, binary, ready},
};

/// Everything one test needs.
pub struct Stack {
    /// The model its agents use.
    pub model: Model,
    /// The Temporal server that its turns run on.
    pub temporal: &'static Temporal,
    /// Task queue of its workers.
    pub task_queue: String,
    directory: TempDir,
    backends: Backends,
    /// The ports of the gateway processes.
    gateway_ports: Vec<u16>,
    /// Counts requests, so that they go to the gateways in turn.
    next_gateway: AtomicUsize,
    /// Client of the gateways. It reads the machine's certificates as it is made, so one serves all requests.
    pub http: reqwest::Client,
}

/// Keys of `[agents.default]` besides provider and model. A reply that a test holds back must not reach the limit of an
/// LLM call, however slow the machine is.
const DEFAULT_AGENT: &str = r#"
llm_timeout = "1h"
tools = ["calculate", "current_time", "work_plan", "test_once", "test_read", "test_idempotent"]
"#;

/// Keys of `[gateway]`. No load balancer stands before the gateways of a test, so a gateway need not wait for one as it
/// stops.
const GATEWAY: &str = "drain = \"0s\"";

impl Stack {
    /// Makes a stack with the default agent. Only the model and Temporal run yet.
    pub async fn new(model: Model) -> Self {
        Self::with_agent(model, DEFAULT_AGENT).await
    }

    /// Makes a stack with these keys in `[agents.default]`.
    pub async fn with_agent(model: Model, agent: &str) -> Self {
        let backends = Backends::shared().await;
        Self::on(backends, model, agent).await
    }

    /// Makes a stack on the embedded backends, whatever backends the test has, for a test of SQLite itself.
    pub async fn embedded(model: Model) -> Self {
        Self::on(Backends::Embedded, model, DEFAULT_AGENT).await
    }

    /// Makes a stack on a PostgreSQL and a Redis that no other test uses, so that a test may break them.
    pub async fn breakable(model: Model) -> Self {
        Self::on(Backends::own().await, model, DEFAULT_AGENT).await
    }

    /// Gives processes started from now on a new and empty Temporal server, which the test may stop. It ends with the
    /// test's process.
    pub async fn move_to_own_temporal(&mut self) -> &'static Temporal {
        self.temporal = Temporal::dev().await.lasting();
        self.temporal
    }

    /// Makes a stack on these backends, with the Temporal server that all tests share.
    async fn on(backends: Backends, model: Model, agent: &str) -> Self {
        Self::of(temporal::shared().await, backends, model, agent)
    }

    /// Makes a stack on this Temporal server and these backends, with these keys in `[agents.default]`.
    pub fn of(temporal: &'static Temporal, backends: Backends, model: Model, agent: &str) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("everturn-test-")
            .tempdir()
            .unwrap();
        let config = format!(
            "[providers.scripted]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"SCRIPTED_KEY\"\n\n\
             [agents.default]\nprovider = \"scripted\"\nmodel = \"scripted\"\ninstructions = \"Do as scripted.\"\n{agent}\n\n\
             [gateway]\n{GATEWAY}\n",
            model.base_url()
        );
        let codec = if processes::is_encrypted() {
            "\n[codec]\nkeys_env = \"EVERTURN_CODEC_KEYS\"\n"
        } else {
            ""
        };
        fs::write(
            directory.path().join("everturn.toml"),
            format!("{config}{codec}"),
        )
        .unwrap();
        // It stands in every history, so that a long name would make them larger than those of users.
        let number = uuid::Uuid::new_v4().simple().to_string();
        let task_queue = format!("test-{}", &number[..12]);
        let gateway_ports = (0..backends.processes()).map(|_| free_port()).collect();
        let next_gateway = AtomicUsize::new(0);
        Self {
            model,
            temporal,
            task_queue,
            directory,
            backends,
            gateway_ports,
            next_gateway,
            http: http::client(),
        }
    }

    /// The servers that its data is on.
    pub fn backends(&self) -> &Backends {
        &self.backends
    }

    /// Adds tables to the configuration of processes started from now on.
    pub fn configure(&self, tables: &str) {
        let file = self.path("everturn.toml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{text}\n{tables}")).unwrap();
    }

    /// Adds keys to the table `[gateway]` of processes started from now on.
    pub fn configure_gateway(&self, keys: &str) {
        let path = self.path("everturn.toml");
        let text = fs::read_to_string(&path).unwrap();
        let table = format!("[gateway]\n{keys}\n");
        fs::write(path, text.replacen("[gateway]\n", &table, 1)).unwrap();
    }

    /// Sets the number of gateways, each on a port of its own.
    #[must_use]
    pub fn with_gateways(mut self, count: usize) -> Self {
        self.gateway_ports = (0..count).map(|_| free_port()).collect();
        self
    }

    /// Returns the PostgreSQL of a breakable stack.
    pub fn postgres(&self) -> &Postgres {
        self.backends.postgres().expect("a breakable stack")
    }

    /// Returns the Redis of a breakable stack.
    pub fn redis(&self) -> &Redis {
        self.backends.redis().expect("a breakable stack")
    }

    /// Returns the path of a file in the stack's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the directory of the stack.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the base URL of a gateway, each time that of the next one.
    pub fn url(&self) -> String {
        self.gateway_url(
            self.next_gateway.fetch_add(1, Ordering::Relaxed) % self.gateway_ports.len(),
        )
    }

    /// Returns the base URL of one of the gateways.
    pub fn gateway_url(&self, number: usize) -> String {
        format!("http://127.0.0.1:{}", self.gateway_port(number))
    }

    /// Returns the port of one of the gateways on 127.0.0.1.
    pub fn gateway_port(&self, number: usize) -> u16 {
        self.gateway_ports[number]
    }

    /// Returns the lines of the file to which the test tools append their effects.
    pub fn effects(&self) -> Vec<String> {
        fs::read_to_string(self.effects_file())
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Returns the number of rows in each table of the schema but the audit trail, which grows beside what a test counts.
    pub async fn rows(&self) -> Vec<(String, i64)> {
        let mut rows = self.all_rows().await;
        rows.retain(|(table, _)| table != "audit_events");
        rows
    }

    async fn all_rows(&self) -> Vec<(String, i64)> {
        if let Some(rows) = self.backends.rows().await {
            return rows;
        }
        let options = SqliteConnectOptions::new()
            .filename(self.path("everturn.db"))
            .read_only(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_sqlx%' ORDER BY name")
            .fetch_all(&pool)
            .await
            .unwrap();
        let mut rows = Vec::new();
        for table in tables {
            let name: String = table.get(0);
            let count = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {name}")));
            rows.push((name, count.fetch_one(&pool).await.unwrap().get(0)));
        }
        rows
    }

    /// Returns all that is in the database: each row of each table, as text.
    pub async fn dump(&self) -> String {
        if let Some(dump) = self.backends.dump().await {
            return dump;
        }
        let options = SqliteConnectOptions::new().filename(self.path("everturn.db"));
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let mut dump = String::new();
        for (table, _) in self.all_rows().await {
            let columns = format!(
                "SELECT group_concat('quote(\"' || name || '\")', ' || '','' || ') FROM pragma_table_info('{table}')"
            );
            let columns: String = sqlx::query_scalar(sqlx::AssertSqlSafe(columns))
                .fetch_one(&pool)
                .await
                .unwrap();
            let rows = sqlx::AssertSqlSafe(format!("SELECT {columns} FROM {table}"));
            let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&pool).await.unwrap();
            dump.extend(rows.into_iter().map(|row| format!("{table}: {row}\n")));
        }
        dump
    }

    /// Runs a statement on the database, which sees what the stack's processes write.
    pub async fn run_sql(&self, sqlite: &str, postgres: &str) {
        if self.backends.run_sql(postgres).await {
            return;
        }
        let options = SqliteConnectOptions::new().filename(self.path("everturn.db"));
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let text = sqlx::AssertSqlSafe(sqlite.to_owned());
        sqlx::raw_sql(text).execute(&pool).await.unwrap();
    }

    /// Makes the database refuse these new events of a conversation, with an error that Everturn does not know. `rows`
    /// is a condition on `NEW`.
    pub async fn refuse_events(&self, conversation_id: &str, rows: &str) {
        let when = format!("NEW.conversation_id = '{conversation_id}' AND {rows}");
        self.refuse("INSERT", conversation_id, &when).await;
    }

    /// Makes the database refuse to remove the events of a conversation.
    pub async fn refuse_removal(&self, conversation_id: &str) {
        let when = format!("OLD.conversation_id = '{conversation_id}'");
        self.refuse("DELETE", conversation_id, &when).await;
    }

    /// Makes the database refuse a statement on the events of a conversation, for the rows of which `when` is true.
    async fn refuse(&self, statement: &str, conversation_id: &str, when: &str) {
        let trigger = format!(
            "CREATE TRIGGER \"{conversation_id}\" BEFORE {statement} ON agent_execution_events"
        );
        let sqlite = format!("{trigger} WHEN {when} BEGIN SELECT RAISE(ABORT, 'refused'); END");
        let postgres = format!(
            "CREATE OR REPLACE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'refused'; END $$; \
             {trigger} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refused()"
        );
        self.run_sql(&sqlite, &postgres).await;
    }

    /// Opens the store that the stack's processes use.
    pub async fn store(&self) -> Store {
        let url = self.backends.database();
        let url = url.map_or_else(
            || self.path("everturn.db").display().to_string(),
            str::to_owned,
        );
        everturn_store::connect(&url, StoreOptions::default())
            .await
            .unwrap()
    }

    /// Ends a turn in the store, behind the back of its workflow.
    pub async fn fail_turn(&self, conversation_id: &str, message_id: &str) {
        let store = self.store().await;
        let tenant = Access::tenant(DEFAULT_TENANT);
        let found = store.conversations.conversation(&tenant, conversation_id);
        let failure = TurnFailure {
            code: FailureCode::TurnLost,
            message: "It was ended by a test.",
        };
        let found = found.await.unwrap().unwrap();
        let ended = store.reconciliation.fail_turn(&found, message_id, failure);
        assert!(ended.await.unwrap());
    }

    fn effects_file(&self) -> PathBuf {
        self.path("effects")
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["worker.log", "gateway.log", "dev.log"] {
                let text = fs::read_to_string(self.path(log)).unwrap_or_default();
                let from = text.char_indices().rev().nth(4000).map_or(0, |(at, _)| at);
                eprintln!("---- end of {log} ----\n{}", &text[from..]);
            }
        }
    }
}
