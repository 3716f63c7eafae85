//! The first keys of a server: configured by the operator, or generated.

use super::ServerContext;
use crate::config::Hidden;
use crate::failure::Failure;
use crate::output;
use tandem_access::{BOOTSTRAP_PRINCIPAL, Identity, KeyError, Keyring, NewKey, Scope, ScopeSet};
use tandem_record::{Actor, Principal, TenantId, Timestamp};
use tandem_store::KeyRecord;

/// The identity of the console's first visitor: the configured key, else the key in the store with
/// the most scopes, else a new key.
pub(super) async fn prepare(opened: &ServerContext) -> anyhow::Result<Option<Identity>> {
    let settings = &opened.settings;
    let configured = import_configured(opened).await?;
    if settings.api_key.is_some() || settings.tenant2_api_key.is_some() {
        return Ok(configured);
    }
    let now = opened.now();
    let stored = opened.keyring.list(None).await?;
    let most_scoped = stored
        .iter()
        .filter(|key| is_usable(key, now))
        .max_by_key(|key| key.scopes.len());
    if let Some(key) = most_scoped {
        return Ok(Some(Identity::of_key(key)));
    }
    let (record, secret) = opened
        .keyring
        .mint(bootstrap("default"), &Actor::host(), now)
        .await?;
    output::note(format!(
        "\n\
         ┌─ No API key was configured, so one was made. It is shown only now:\n\
         │\n\
         │  {}\n\
         │\n\
         └─ It may do everything in tenant `default`. Only its hash is stored.\n",
        secret.expose()
    ));
    Ok(Some(Identity::of_key(&record)))
}

/// Imports the keys of the environment. Returns the identity of the main key, or of the other.
pub(super) async fn import_configured(opened: &ServerContext) -> anyhow::Result<Option<Identity>> {
    let settings = &opened.settings;
    if settings.api_key.is_some() && settings.api_key == settings.tenant2_api_key {
        return Err(Failure::new(
            "TANDEM_API_KEY and TANDEM_TENANT2_API_KEY are the same: a key belongs to one tenant",
            "Give each tenant a key of its own.",
        )
        .into());
    }
    let mut holder = None;
    for (variable, tenant, key) in [
        ("TANDEM_API_KEY", "default", &settings.api_key),
        (
            "TANDEM_TENANT2_API_KEY",
            "tenant2",
            &settings.tenant2_api_key,
        ),
    ] {
        if let Some(key) = key {
            let now = opened.now();
            let record = import(&opened.keyring, variable, tenant, key, now).await?;
            let usable = is_usable(&record, now).then(|| Identity::of_key(&record));
            holder = holder.or(usable);
        }
    }
    Ok(holder)
}

async fn import(
    keyring: &Keyring,
    variable: &str,
    tenant: &str,
    key: &Hidden,
    now: Timestamp,
) -> anyhow::Result<KeyRecord> {
    let imported = keyring.import(&key.0, bootstrap(tenant), now).await;
    let record = imported.map_err(|error| match error {
        KeyError::Fault(fault) => anyhow::Error::from(fault),
        refused => Failure::new(
            format!("{variable} cannot be used: {refused}"),
            "`openssl rand -hex 32` makes a good one.",
        )
        .into(),
    })?;
    if record.tenant.as_str() != tenant {
        let other = &record.tenant;
        tracing::warn!("{variable} is already a key of tenant {other}");
    }
    if !is_usable(&record, now) {
        let id = &record.key_id;
        tracing::warn!("{variable} was revoked or has expired ({id}); it gives no access");
    }
    Ok(record)
}

fn bootstrap(tenant: &str) -> NewKey {
    NewKey {
        principal: Some(Principal::new(BOOTSTRAP_PRINCIPAL)),
        ..NewKey::new(
            BOOTSTRAP_PRINCIPAL,
            TenantId::new(tenant),
            Scope::all().iter().copied(),
        )
    }
}

fn is_usable(key: &KeyRecord, now: Timestamp) -> bool {
    let ended = key.expires_at.is_some_and(|at| at <= now);
    let useful = !ScopeSet::from_stored(&key.scopes).is_empty();
    key.revoked_at.is_none() && !ended && useful
}
