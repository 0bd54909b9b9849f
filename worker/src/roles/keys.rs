//! `everturn keys`: makes, lists and revokes API keys.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use everturn_config::Config;
use everturn_gateway::{auth::Secret, config::Scopes};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{Access, ApiKey, AuditTrail, KeyKind, KeyMaker, Keys, NewKey};
use everturn_supervisor::shutdown;
use serde_json::{Value, json};

use crate::{
    audit::by_operator,
    cli::{Common, CreateKey, Expiry, KeysCommand, ListKeys, RevokeKey},
    connections,
};

/// The number of keys per query.
const PAGE: u32 = 500;

/// Runs a subcommand.
pub async fn run(common: &Common, command: KeysCommand) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let config = Config::load_for_gateway(common.config.as_deref())?;
    let lifetime = config.gateway.auth.key_lifetime;
    let keep_days = config.gateway.audit.keep_days;
    drop(config);
    let store = connections::store_of_command(common, &shutdown).await?;
    let keys = &store.keys;
    match command {
        KeysCommand::Create(options) => create(&**keys, options, lifetime, keep_days).await,
        KeysCommand::List(options) => {
            note_listing(&*store.audit, options.tenant.as_deref(), keep_days).await?;
            list(&**keys, options).await
        }
        KeysCommand::Revoke(options) => revoke(&**keys, options, keep_days).await,
    }
}

/// Makes a key. Standard output gets the secret alone, for scripts.
async fn create(
    keys: &dyn Keys,
    options: CreateKey,
    lifetime: Option<Duration>,
    keep_days: u32,
) -> anyhow::Result<ExitCode> {
    let now = Utc::now();
    let lifetime = match options.expires {
        Some(Expiry::After(lifetime)) => Some(lifetime),
        Some(Expiry::Never) => None,
        None => lifetime,
    };
    let expires_at = lifetime.map(|lifetime| {
        let end = TimeDelta::from_std(lifetime)
            .ok()
            .and_then(|lifetime| now.checked_add_signed(lifetime));
        end.context("--expires is too far away; `--expires never` makes a key that does not expire")
    });
    let expires_at = expires_at.transpose()?;
    let secret = Secret::generate(KeyKind::Key).context("the system gives no random bytes")?;
    let scopes: Scopes = options.scope.into_iter().collect();
    let new = NewKey {
        id: secret.id().to_owned(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: secret.hash(),
        access: Access {
            tenant_id: options.tenant,
            owner_id: options.owner,
        },
        scopes: scopes.to_string(),
        name: options.name,
        made_by: KeyMaker::default(),
        expires_at,
        signed_in_at: None,
    };
    let details = json!({
        "scopes": new.scopes,
        "owner": new.access.owner_id,
        "name": new.name,
        "expires_at": expires_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true)),
    });
    let entry = by_operator(
        AuditAction::KeyCreated,
        Some(new.access.tenant_id.clone()),
        (AuditTargetKind::Key, &new.id),
        details,
        keep_days,
    );
    keys.create_key(new, Some(&entry))
        .await
        .context("cannot store the key")?;
    eprintln!(
        "key {} may {scopes}. Keep the key safe: Everturn stores only a hash and cannot show the key again.",
        secret.id()
    );
    println!("{}", secret.reveal());
    Ok(ExitCode::SUCCESS)
}

/// Notes in the audit trail that an operator lists the keys.
async fn note_listing(
    audit: &dyn AuditTrail,
    tenant_id: Option<&str>,
    keep_days: u32,
) -> anyhow::Result<()> {
    let entry = by_operator(
        AuditAction::KeysListed,
        tenant_id.map(str::to_owned),
        (AuditTargetKind::Tenant, tenant_id.unwrap_or_default()),
        json!({}),
        keep_days,
    );
    let noted = audit.append_audit(&entry).await;
    noted.context("cannot write to the audit trail")
}

async fn list(keys: &dyn Keys, options: ListKeys) -> anyhow::Result<ExitCode> {
    let (mut found, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = keys
            .list_keys(options.tenant.as_deref(), after.as_deref(), PAGE)
            .await
            .context("cannot read the keys")?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        found.extend(page);
    }
    found.sort_by_key(|key| key.created_at);
    let now = Utc::now();
    if options.json {
        let shown: Vec<_> = found.iter().map(|key| as_json(key, now)).collect();
        println!("{}", serde_json::to_string_pretty(&shown)?);
    } else if found.is_empty() {
        println!("no keys; make a key with `everturn keys create --tenant NAME`");
    } else {
        print!("{}", table(&found, now));
    }
    Ok(ExitCode::SUCCESS)
}

async fn revoke(keys: &dyn Keys, options: RevokeKey, keep_days: u32) -> anyhow::Result<ExitCode> {
    // A person who revokes a leaked key often has only the secret, which begins with the id.
    let id = Secret::parse(&options.id).map_or(options.id, |secret| secret.id().to_owned());
    let key = keys.find_key(&id).await.context("cannot read the key")?;
    let entry = by_operator(
        AuditAction::KeyRevoked,
        key.map(|key| key.access.tenant_id),
        (AuditTargetKind::Key, &id),
        json!({}),
        keep_days,
    );
    if !keys
        .revoke_key(&id, Some(&entry))
        .await
        .context("cannot revoke the key")?
    {
        bail!("there is no key `{id}`; `everturn keys list` shows the keys");
    }
    println!(
        "revoked {id} and its sessions; gateways refuse the key after `key_cache` of [auth] (by default 5 s)"
    );
    Ok(ExitCode::SUCCESS)
}

fn state(key: &ApiKey, now: DateTime<Utc>) -> &'static str {
    match key.revoked_at {
        Some(_) => "revoked",
        None if key.is_valid_at(now) => "valid",
        None => "expired",
    }
}

fn as_json(key: &ApiKey, now: DateTime<Utc>) -> Value {
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    json!({
        "id": key.id,
        "name": key.name,
        "tenant": key.access.tenant_id,
        "owner": key.access.owner_id,
        "scopes": key.scopes.split_whitespace().collect::<Vec<_>>(),
        "made_by_key": key.made_by.key,
        "made_by_subject": key.made_by.subject,
        "state": state(key, now),
        "created_at": time(key.created_at),
        "expires_at": key.expires_at.map(time),
        "revoked_at": key.revoked_at.map(time),
        "last_used_at": key.last_used_at.map(time),
    })
}

const COLUMNS: [&str; 9] = [
    "ID",
    "STATE",
    "TENANT",
    "OWNER",
    "SCOPES",
    "CREATED",
    "EXPIRES",
    "LAST USED",
    "NAME",
];

/// Returns a table. Every column has the width of the column's widest entry.
fn table(keys: &[ApiKey], now: DateTime<Utc>) -> String {
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M").to_string();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(keys.iter().map(|key| {
        [
            key.id.clone(),
            state(key, now).to_owned(),
            key.access.tenant_id.clone(),
            or_dash(key.access.owner_id.clone()),
            key.scopes.clone(),
            time(key.created_at),
            or_dash(key.expires_at.map(time)),
            or_dash(key.last_used_at.map(time)),
            key.name.clone(),
        ]
    }));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &[String; COLUMNS.len()]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use everturn_store::OwnerState;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_key() {
        let at = DateTime::UNIX_EPOCH;
        let key = ApiKey {
            id: "0011223344556677".to_owned(),
            kind: KeyKind::Key,
            parent_id: None,
            secret_hash: Vec::new(),
            access: Access::owner("acme", "ann"),
            scopes: "read write".to_owned(),
            name: "phone".to_owned(),
            made_by: KeyMaker::default(),
            created_at: at,
            expires_at: Some(at + TimeDelta::days(1)),
            revoked_at: None,
            last_used_at: None,
            signed_in_at: at,
            owner_state: OwnerState::default(),
        };
        let text = table(&[key], at);
        assert_eq!(
            text,
            "ID                STATE  TENANT  OWNER  SCOPES      CREATED           EXPIRES           LAST USED  NAME\n\
             0011223344556677  valid  acme    ann    read write  1970-01-01 00:00  1970-01-02 00:00  -          phone\n"
        );
    }
}
