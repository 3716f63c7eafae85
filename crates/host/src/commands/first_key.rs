//! `tandem keys create --store`: creates a key directly in the store. Keys created through a server
//! belong to the tenant of their creator; the first key of a tenant is created here.

use super::operate::store_failure;
use crate::cli::NewKeyArgs;
use crate::config;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_access::{Keyring, NewKey, Scope};
use tandem_record::{Actor, AgentId, Principal, TenantId, Timestamp, WorkspaceId};
use tandem_store_sqlite::{Options, SqliteStore};

/// The same output as from a server.
pub(super) async fn make(
    args: &NewKeyArgs,
    store: &str,
    scopes: &[String],
) -> anyhow::Result<Value> {
    let scopes = scopes.iter().filter_map(|name| Scope::parse(name));
    let scopes: Vec<Scope> = scopes.collect();
    let idle = scopes.iter().find(|scope| !scope.concerns_conversations());
    if let (Some(_), Some(scope)) = (&args.agent, idle) {
        anyhow::bail!("the scope {scope} does nothing for a key that is good for one agent only");
    }
    let path = config::sqlite_path(store)?;
    let opened = SqliteStore::open(&path, Options::default());
    let opened = opened.map_err(|fault| store_failure("make a key", &fault, "Check the path."))?;
    let keyring = Keyring::new(Arc::new(opened));
    let at = |time: jiff::Timestamp| Timestamp(time.as_millisecond());
    let new = NewKey {
        name: args.name.clone(),
        tenant: TenantId::from(args.tenant.clone().unwrap_or_default()),
        workspace: args.workspace.clone().map(WorkspaceId::from),
        agent: args.agent.clone().map(AgentId::from),
        principal: args.principal.clone().map(Principal::from),
        scopes: scopes.into_iter().collect(),
        roles: args.roles.clone(),
        expires_at: args.expires_at.map(at),
        test: args.test,
    };
    let now = at(jiff::Timestamp::now());
    let (record, secret) = keyring.mint(new, &Actor::host(), now).await?;
    Ok(json!({
        "keyId": record.key_id,
        "tenant": record.tenant,
        "secret": secret.expose(),
    }))
}
