//! Prepares the start of gateway and worker in `everturn dev`, with a line of progress for each step.

use std::{
    fs::{DirBuilder, File},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use anyhow::{Context, bail};
use everturn_codec::Codec;
use everturn_config::{Config, DEMO_PROVIDER};
use everturn_models::{Provider, ProviderKind, Providers};
use everturn_store::Store;
use temporalio_client::Client;
use tokio_util::sync::CancellationToken;

use super::{adopted, progress::Progress};
use crate::{
    cli::{Common, DevOptions},
    connections,
    demo::DemoModel,
};

/// Creates a missing data directory for the user alone: conversations are in the databases of Everturn and Temporal.
pub(super) fn folder(data_dir: &Path) -> anyhow::Result<()> {
    let mut folder = DirBuilder::new();
    let made = folder.recursive(true).mode(0o700).create(data_dir);
    made.with_context(|| format!("cannot create {}", data_dir.display()))
}

/// Locks the data directory until the process ends, in any way. Two processes on one data directory would run two
/// Temporal servers on one database.
pub(super) fn lock(data_dir: &Path) -> anyhow::Result<File> {
    let path = data_dir.join("dev.lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => bail!(
            "another everturn dev uses {}; stop it, or choose another --data-dir",
            data_dir.display()
        ),
    }
}

/// Waits for the Temporal server, and prepares it.
pub(super) async fn connect_temporal(
    common: &Common,
    options: &DevOptions,
    is_adopted: bool,
    codec: Option<Codec>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Client> {
    let waiting = Progress::start("Temporal server");
    let client = connections::local_temporal(options.temporal_port, shutdown).await?;
    let client = connections::with_codec(client, codec.as_ref());
    let address = format!("127.0.0.1:{}", options.temporal_port);
    if is_adopted {
        adopted::check(&client, &common.task_queue, &address).await?;
    }
    connections::register_search_attributes(&client, shutdown).await?;
    waiting.done(&if is_adopted {
        format!("{address}, which ran already")
    } else {
        address
    });
    Ok(client)
}

pub(super) async fn open_database(
    common: &Common,
    config: &Config,
    shutdown: &CancellationToken,
) -> anyhow::Result<Store> {
    let waiting = Progress::start("database");
    connections::migrate_store(common, shutdown).await?;
    let store = connections::store(common, config.store(config.worker_pool()), shutdown).await?;
    waiting.done(&connections::without_password(&common.database()));
    Ok(store)
}

/// Returns the configured providers. If an agent needs the demo model, the demo model is started and added; it runs
/// until it is dropped. With a watch, a later agent may need the demo model.
pub(super) async fn providers(
    config: &Config,
    is_watched: bool,
) -> anyhow::Result<(Providers, Option<DemoModel>)> {
    let mut providers = config.providers.clone();
    let is_needed = config.needs_demo_model();
    if !is_needed && (!is_watched || providers.contains_key(DEMO_PROVIDER)) {
        return Ok((providers, None));
    }
    let demo = DemoModel::start().await?;
    let provider = Provider {
        base_url: Some(demo.base_url()),
        api_key: Some("demo".to_owned()),
        ..Provider::new(ProviderKind::OpenAi)
    };
    providers.insert(DEMO_PROVIDER.to_owned(), provider);
    if !is_needed {
        return Ok((providers, Some(demo)));
    }
    Progress::start("demo model").done("no provider's key is configured: a set of rules answers");
    Ok((providers, Some(demo)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn only_the_user_enters_a_new_data_directory() {
        let parent = tempfile::tempdir().unwrap();
        let data_dir = parent.path().join("data");
        folder(&data_dir).unwrap();
        let mode = fs::metadata(&data_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
