//! `tandem groups`: approver groups of the caller's tenant.

use super::table::table;
use crate::cli::GroupsCommand;
use crate::client::{Client, encode_segment};
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

const GROUPS: &str = "/v1/host/tandem/groups";

pub(crate) async fn groups(command: GroupsCommand) -> anyhow::Result<ExitCode> {
    let (answer, as_json, text) = match command {
        GroupsCommand::List(args) => {
            let answer = Client::connect(&args.connection)?.get(GROUPS).await?;
            let text = listing(&answer);
            (answer, args.connection.json, text)
        }
        GroupsCommand::Set(args) => {
            let path = format!("{GROUPS}/{}", encode_segment(&args.name));
            let body = json!({"members": args.members});
            let client = Client::connect(&args.connection)?;
            let answer = client.put(&path, &body).await?;
            let text = format!("{} has {} members", args.name, args.members.len());
            (answer, args.connection.json, text)
        }
        GroupsCommand::Delete(args) => {
            let path = format!("{GROUPS}/{}", encode_segment(&args.name));
            let answer = Client::connect(&args.connection)?.delete(&path).await?;
            let text = format!("{} deleted", args.name);
            (answer, args.connection.json, text)
        }
    };
    if as_json {
        output::json(&answer)?;
    } else {
        output::line(text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(answer: &Value) -> String {
    let mut table = table(["GROUP", "MEMBERS"]);
    for group in answer["groups"].as_array().into_iter().flatten() {
        let members = group["members"].as_array().into_iter().flatten();
        let members: Vec<&str> = members.filter_map(Value::as_str).collect();
        let name = group["name"].as_str().unwrap_or_default();
        table.add_row([sanitize(name), sanitize(&members.join(" "))]);
    }
    table.trim_fmt()
}
