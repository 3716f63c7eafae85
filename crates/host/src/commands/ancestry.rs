//! `tandem runs ancestry`: the parents of a run up to its root.

use super::runs::run_path;
use crate::cli::OneRunArgs;
use crate::client::Client;
use crate::output::{self, sanitize};
use serde_json::Value;

/// Deeper than any run tree a server permits.
const MAX_ANCESTORS: usize = 128;

pub(super) async fn show(args: OneRunArgs) -> anyhow::Result<()> {
    let client = Client::connect(&args.connection)?;
    let mut response = client.get(&path(&args.run)).await?;
    let mut ancestors: Vec<Value> = Vec::new();
    let mut parent = response["parent"].clone();
    while !parent.is_null() && ancestors.len() < MAX_ANCESTORS {
        // Ancestors of a parent on another host are stored there.
        let here = parent["wellKnownUrl"].is_null();
        let next = match parent["runId"].as_str().filter(|_| here) {
            Some(run) => client.get(&path(run)).await?["parent"].take(),
            None => Value::Null,
        };
        ancestors.push(std::mem::replace(&mut parent, next));
    }
    if args.connection.json {
        response["ancestors"] = Value::Array(ancestors);
        output::json(&response)?;
    } else {
        output::line(lines(&args.run, &ancestors))?;
    }
    Ok(())
}

fn path(run: &str) -> String {
    format!("{}/ancestry", run_path(run))
}

fn lines(run: &str, ancestors: &[Value]) -> String {
    if ancestors.is_empty() {
        return format!("{} was started by no other run", sanitize(run));
    }
    let mut lines = sanitize(run);
    for ancestor in ancestors {
        let part = |name: &str| ancestor[name].as_str().map(sanitize);
        let by = part("cause").unwrap_or_default();
        let parent = part("runId").unwrap_or_default();
        lines.push_str(&format!("\n  by {by} of {parent}"));
        if let Some(url) = part("wellKnownUrl") {
            let host = part("hostId").unwrap_or_default();
            lines.push_str(&format!(" on {host} ({url})"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ancestors_are_printed_nearest_first() {
        let ancestors = [
            json!({"runId": "run-b", "hostId": "here", "cause": "core.subWorkflow"}),
            json!({"runId": "run-c", "hostId": "there", "cause": "mcp-tool-call",
                   "wellKnownUrl": "https://there.example/.well-known/openwop"}),
        ];
        let response = "run-a\n  by core.subWorkflow of run-b\n  by mcp-tool-call of run-c on there \
                    (https://there.example/.well-known/openwop)";
        assert_eq!(lines("run-a", &ancestors), response);
        assert_eq!(lines("run-a", &[]), "run-a was started by no other run");
    }
}
