//! `make stack`: PostgreSQL, Redis and the production Temporal server in the foreground, on fixed ports, until Ctrl-C.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context;
use clap::Parser;
use everturn_supervisor::shutdown;
use everturn_tests::{
    postgres::Postgres,
    redis::Redis,
    server::ServerLocation,
    temporal,
    temporal_cluster::{self, TemporalCluster},
};

/// Name of the database of Everturn itself; Temporal has two others.
const DATABASE: &str = "everturn";

/// Setting of the Temporal server: messages that wait do not wait for each other (docs/engine.md, continue-as-new waits for
/// a second).
const NO_PAUSE: &str = "history.workflowIdReuseMinimalInterval: [{value: 0s}]\n";

/// PostgreSQL, Redis and the production Temporal server, until Ctrl-C. Data stays for the next time.
#[derive(Debug, Parser)]
#[command(max_term_width = 110)]
struct Options {
    /// Where they keep their data; as root, a directory that the account `postgres` may enter.
    #[arg(
        long,
        env = "EVERTURN_STACK_DATA",
        default_value = ".data/stack",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// Port of PostgreSQL.
    #[arg(long, default_value_t = 15432, value_name = "PORT")]
    postgres_port: u16,
    /// Port of Redis.
    #[arg(long, default_value_t = 16379, value_name = "PORT")]
    redis_port: u16,
    /// Port of Temporal's frontend; its other services take port + 1, + 2 and + 6, and each the one 300 below its own.
    #[arg(long, default_value_t = 17233, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..65000))]
    temporal_port: u16,
}

/// The servers that have been started so far.
#[derive(Default)]
struct Stack {
    postgres: Option<Postgres>,
    redis: Option<Redis>,
    temporal: Option<TemporalCluster>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everturn-stack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let shutdown = shutdown::token()?;
    let ports = [options.postgres_port, options.redis_port].into_iter();
    for port in ports.chain(temporal_cluster::lasting_ports(options.temporal_port)) {
        TcpListener::bind(("127.0.0.1", port)).with_context(|| {
            format!("cannot listen on 127.0.0.1:{port}; does `make stack` run already? See --help for other ports")
        })?;
    }
    let mut stack = Stack::default();
    let result = tokio::select! {
        result = stack.start_and_watch(options) => result,
        () = shutdown.cancelled() => Ok(()),
    };
    println!("\nstopping …");
    stack.stop().await;
    result
}

impl Stack {
    async fn start_and_watch(&mut self, options: &Options) -> anyhow::Result<()> {
        // The servers run in other working directories, so a relative path would lead elsewhere.
        let data = std::path::absolute(&options.data_dir)?;
        println!("everturn stack · data in {}", data.display());
        self.start(options, &data).await?;
        print_hints(options);
        let (Some(postgres), Some(redis), Some(temporal)) =
            (&self.postgres, &self.redis, &self.temporal)
        else {
            return Ok(());
        };
        tokio::select! {
            error = postgres.ended() => Err(error),
            error = redis.ended() => Err(error),
            error = temporal.ended() => Err(error),
        }
    }

    async fn start(&mut self, options: &Options, data: &Path) -> anyhow::Result<()> {
        let location = |name: &str, port| ServerLocation::Lasting {
            directory: data.join(name),
            port,
        };
        let begun = announce("PostgreSQL", options.postgres_port);
        let postgres = Postgres::start_at(location("postgres", options.postgres_port)).await?;
        let postgres = self.postgres.insert(postgres);
        postgres.ensure_database(DATABASE).await?;
        done(begun);

        let begun = announce("Redis", options.redis_port);
        self.redis = Some(Redis::start_at(location("redis", options.redis_port)).await?);
        done(begun);

        let begun = announce("Temporal", options.temporal_port);
        let location = location("temporal", options.temporal_port);
        self.temporal = Some(temporal::cluster(postgres, location, NO_PAUSE).await?);
        done(begun);
        Ok(())
    }

    /// Stops the servers. Temporal is the first, because it needs the database to leave its cluster in order.
    async fn stop(&self) {
        if let Some(temporal) = &self.temporal {
            temporal.stop().await;
        }
        if let Some(redis) = &self.redis {
            redis.stop().await;
        }
        if let Some(postgres) = &self.postgres {
            postgres.stop().await;
        }
    }
}

fn announce(name: &str, port: u16) -> Instant {
    println!("  … {name:<12} 127.0.0.1:{port}");
    Instant::now()
}

fn done(begun: Instant) {
    println!("    ✓ ({:.1} s)", begun.elapsed().as_secs_f32());
}

fn print_hints(options: &Options) {
    let Options {
        postgres_port,
        redis_port,
        temporal_port,
        ..
    } = options;
    let user = everturn_tests::postgres::USER;
    println!(
        "
export EVERTURN_DATABASE=postgres://{user}@127.0.0.1:{postgres_port}/{DATABASE}
export EVERTURN_REDIS=redis://127.0.0.1:{redis_port}
export TEMPORAL_ADDRESS=127.0.0.1:{temporal_port}

With these set, first
  target/debug/everturn migrate
and then, in terminals of their own, as many of each as you like:
  target/debug/everturn worker       (needs a provider's key or an everturn.toml)
  target/debug/everturn gateway      (the next ones with --listen 127.0.0.1:<port>)
  target/debug/everturn chat

Ctrl-C stops everything; the data stays."
    );
}
