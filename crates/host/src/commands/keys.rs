//! `tandem keys`: API keys of the caller's tenant.

use super::first_key;
use super::table::table;
use crate::cli::{KeysCommand, NewKeyArgs};
use crate::client::{Client, encode_segment};
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;
use tandem_access::Scope;

const KEYS: &str = "/v1/host/tandem/keys";

pub(crate) async fn keys(command: KeysCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeysCommand::Create(args) => {
            let made = match &args.store {
                Some(store) => first_key::make(&args, store, &scopes(&args)).await?,
                None => {
                    let client = Client::connect(&args.connection)?;
                    client.post(KEYS, &create_body(&args)).await?
                }
            };
            show_secret(&made, args.connection.json)?;
        }
        KeysCommand::List(args) => {
            let client = Client::connect(&args.connection)?;
            let answer = client.get(KEYS).await?;
            if args.connection.json {
                output::json(&answer)?;
            } else {
                output::line(listing(&answer))?;
            }
        }
        KeysCommand::Revoke {
            key,
            with_made,
            keep_made,
        } => {
            let client = Client::connect(&key.connection)?;
            let made = match (with_made, keep_made) {
                (true, _) => "?made=revoke",
                (_, true) => "?made=keep",
                (false, false) => "",
            };
            let path = format!("{KEYS}/{}{made}", encode_segment(&key.key_id));
            let answer = client.delete(&path).await?;
            if key.connection.json {
                output::json(&answer)?;
            } else {
                output::line(revoked(&key.key_id, &answer))?;
                let kept = ids(&answer["kept"]);
                if !kept.is_empty() {
                    output::note(format!(
                        "keys it made that still work: {kept}. If the key leaked, revoke it again with --with-made"
                    ));
                }
            }
        }
        KeysCommand::Rotate { key, expires_at } => {
            let client = Client::connect(&key.connection)?;
            let path = format!("{KEYS}/{}:rotate", encode_segment(&key.key_id));
            let mut body = json!({});
            if let Some(at) = expires_at {
                body["expiresAt"] = json!(at.to_string());
            }
            let made = client.post(&path, &body).await?;
            show_secret(&made, key.connection.json)?;
            if !key.connection.json {
                let old = &key.key_id;
                output::note(format!(
                    "{old} still works; revoke it when nobody uses it: tandem keys revoke {old}"
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn revoked(key_id: &str, answer: &Value) -> String {
    match ids(&answer["alsoRevoked"]) {
        also if also.is_empty() => format!("{key_id} revoked"),
        also => format!("{key_id} revoked, and keys it made: {also}"),
    }
}

fn ids(listed: &Value) -> String {
    let ids = listed.as_array().into_iter().flatten();
    let ids: Vec<String> = ids.filter_map(Value::as_str).map(sanitize).collect();
    ids.join(" ")
}

fn scopes(args: &NewKeyArgs) -> Vec<String> {
    if args.scopes.iter().any(|scope| scope == "all") {
        let every = Scope::all().iter();
        every.map(|scope| scope.as_str().to_owned()).collect()
    } else {
        args.scopes.clone()
    }
}

fn create_body(args: &NewKeyArgs) -> Value {
    let mut body = json!({"name": args.name, "scopes": scopes(args)});
    if let Some(tenant) = &args.tenant {
        body["tenant"] = json!(tenant);
    }
    if !args.roles.is_empty() {
        body["roles"] = json!(args.roles);
    }
    if let Some(principal) = &args.principal {
        body["principal"] = json!(principal);
    }
    if let Some(workspace) = &args.workspace {
        body["workspace"] = json!(workspace);
    }
    if let Some(agent) = &args.agent {
        body["agent"] = json!(agent);
    }
    if let Some(at) = args.expires_at {
        body["expiresAt"] = json!(at.to_string());
    }
    if args.test {
        body["test"] = json!(true);
    }
    body
}

/// Prints only the secret to stdout, so that `$(tandem keys create …)` is the key.
fn show_secret(made: &Value, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        output::json(made)?;
        return Ok(());
    }
    let part = |key: &str| sanitize(made[key].as_str().unwrap_or_default());
    output::note(format!(
        "{} made; its secret is shown only now:",
        part("keyId")
    ));
    output::line(part("secret"))?;
    Ok(())
}

fn listing(answer: &Value) -> String {
    let mut table = table(["KEY", "NAME", "PRINCIPAL", "STATE", "SCOPES"]);
    for key in answer["keys"].as_array().into_iter().flatten() {
        let part = |name: &str| sanitize(key[name].as_str().unwrap_or_default());
        let state = match (key["revokedAt"].as_str(), key["expiresAt"].as_str()) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("until {at}"),
            (None, None) => "active".to_owned(),
        };
        let scopes = key["scopes"].as_array().into_iter().flatten();
        let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
        let scopes = if Scope::all().iter().all(|s| scopes.contains(&s.as_str())) {
            "all".to_owned()
        } else {
            scopes.join(" ")
        };
        table.add_row([
            part("keyId"),
            part("name"),
            part("principal"),
            sanitize(&state),
            sanitize(&scopes),
        ]);
    }
    table.trim_fmt()
}
