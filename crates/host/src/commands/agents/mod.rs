//! `tandem agents` and `tandem types`: a first agent, and what a server has loaded.

mod create;

pub(crate) use create::create;

use super::table::{table, table_without_header};
use crate::cli::{ConnectionArgs, OneAgentArgs};
use crate::client::{Client, ErrorResponse, encode_segment};
use crate::failure::Failure;
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;
use tandem_script::TYPE_DECLARATIONS;

const AGENTS: &str = "/v1/host/tandem/agents";
/// Digits of a hash that are shown.
const SHOWN_DIGITS: usize = 12;

pub(crate) fn types() -> anyhow::Result<ExitCode> {
    output::text(TYPE_DECLARATIONS)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn list(connection: ConnectionArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&connection)?;
    let answer = client.get(AGENTS).await?;
    let agents = answer["agents"].as_array().cloned().unwrap_or_default();
    if connection.json {
        output::json(&json!({"agents": agents}))?;
    } else if agents.is_empty() {
        output::note("no agents; `tandem agents new NAME` writes one, --agents DIR loads it");
    } else {
        output::line(listing(&agents))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(agents: &[Value]) -> String {
    let mut table = table(["ID", "STATUS", "FLOWS", "ERRORS"]);
    for agent in agents {
        let part = |key: &str| sanitize(agent[key].as_str().unwrap_or_default());
        let flows = agent["flows"].as_array().into_iter().flatten();
        let flows: Vec<&str> = flows.filter_map(|flow| flow["flowId"].as_str()).collect();
        let errors = agent["errors"].as_array().map_or(0, Vec::len);
        table.add_row([
            part("id"),
            part("status"),
            sanitize(&flows.join(", ")),
            errors.to_string(),
        ]);
    }
    table.trim_fmt()
}

pub(crate) async fn show(args: OneAgentArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let agent = find(&client, &args.agent).await?;
    if args.connection.json {
        output::json(&agent)?;
    } else {
        output::line(details(&agent))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The agent as the server shows it. An unknown one is answered with those that exist.
pub(super) async fn find(client: &Client, id: &str) -> anyhow::Result<Value> {
    let path = format!("{AGENTS}/{}", encode_segment(id));
    let error = match client.get(&path).await {
        Ok(agent) => return Ok(agent),
        Err(error) => error,
    };
    let refusal = error.downcast_ref::<ErrorResponse>();
    if refusal.is_none_or(|refusal| refusal.status != 404) {
        return Err(error);
    }
    let known = client.get(AGENTS).await?;
    let known = known["agents"].as_array().into_iter().flatten();
    let known: Vec<&str> = known.filter_map(|agent| agent["id"].as_str()).collect();
    let next = match known.is_empty() {
        true => "The server has none; start it with --agents DIR.".to_owned(),
        false => format!("The server has {}.", sanitize(&known.join(", "))),
    };
    Err(Failure::new(format!("there is no agent {id:?}"), next).into())
}

fn details(agent: &Value) -> String {
    let text = |value: &Value| sanitize(value.as_str().unwrap_or_default());
    let mut head = table_without_header();
    head.add_row(["agent".to_owned(), text(&agent["id"])]);
    head.add_row(["status".to_owned(), text(&agent["status"])]);
    for flow in agent["flows"].as_array().into_iter().flatten() {
        let version: String = text(&flow["version"]).chars().take(SHOWN_DIGITS).collect();
        let line = format!(
            "{}  {version}  {}",
            text(&flow["flowId"]),
            text(&flow["file"])
        );
        head.add_row(["flow".to_owned(), line]);
    }
    let mut shown = head.trim_fmt();
    for error in agent["errors"].as_array().into_iter().flatten() {
        shown.push_str(&format!("\n{}", error_line(error)));
    }
    shown
}

/// `file:line:column: error: message`, as `tandem check` prints it.
pub(super) fn error_line(error: &Value) -> String {
    let text = |key: &str| sanitize(error[key].as_str().unwrap_or_default());
    let mut place = text("file");
    if let (Some(line), Some(column)) = (error["line"].as_u64(), error["column"].as_u64()) {
        place.push_str(&format!(":{line}:{column}"));
    }
    format!("{place}: error: {}", text("message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_listed_and_shown_with_flows_and_errors() {
        let agent = json!({"id": "desk", "status": "ready",
            "flows": [{"flowId": "a", "version": "0123456789abcdef", "file": "flows/a.ts"},
                      {"flowId": "b", "version": "ff", "file": "agent.ts"}],
            "errors": [{"file": "flows/c.ts", "line": 3, "column": 7, "message": "no \u{1b}[2J"},
                       {"file": "agent.ts", "message": "odd"}]});
        let expected = " ID    STATUS  FLOWS  ERRORS\n desk  ready   a, b   2";
        assert_eq!(listing(std::slice::from_ref(&agent)), expected);
        let shown = details(&agent);
        for part in [
            "a  0123456789ab  flows/a.ts",
            "flows/c.ts:3:7: error: no \u{fffd}[2J",
            "agent.ts: error: odd",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
