//! `tandem runs fork` and `tandem runs diff`.

use super::runs::{report, run_path};
use super::table::table;
use crate::cli::{DiffArgs, ForkArgs};
use crate::client::Client;
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) async fn fork(args: ForkArgs) -> anyhow::Result<()> {
    let client = Client::connect(&args.connection)?;
    let mode = if args.branch { "branch" } else { "replay" };
    let mut body = json!({"mode": mode});
    if let Some(from) = args.from {
        body["fromSeq"] = json!(from);
    }
    if !args.tags.is_empty() {
        body["runOptionsOverlay"] = json!({"tags": args.tags});
    }
    let path = format!("{}:fork", run_path(&args.run));
    let answer = client.post(&path, &body).await?;
    report(&answer, args.connection.json)
}

pub(super) async fn diff(args: DiffArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let path = format!("{}:diff", run_path(&args.run));
    let found = client
        .query(&path, &[("against", Some(args.against.clone()))])
        .await?;
    if args.connection.json {
        output::json(&found)?;
    } else {
        output::line(describe_diff(&found))?;
    }
    let same = found["divergedAtSeq"].is_null();
    Ok(if same {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One line per event that differs, then the state.
fn describe_diff(found: &Value) -> String {
    let events = found["eventDiffs"].as_array();
    let events = events.map(Vec::as_slice).unwrap_or_default();
    if events.is_empty() {
        return "the runs do not differ".to_owned();
    }
    let mut rows = table(["SEQ", "", "IN THE FIRST", "IN THE SECOND"]);
    for difference in events {
        let sign = match difference["op"].as_str() {
            Some("added") => "+",
            Some("removed") => "-",
            _ => "~",
        };
        rows.add_row([
            difference["seq"].to_string(),
            sign.to_owned(),
            event(&difference["aEvent"]),
            event(&difference["bEvent"]),
        ]);
    }
    let mut text = rows.trim_fmt();
    for (part, change) in found["stateDiff"].as_object().into_iter().flatten() {
        text.push_str(&format!(
            "\n{}: {}",
            sanitize(part),
            sanitize(&change.to_string())
        ));
    }
    if found["truncated"] == true {
        text.push_str("\nmore may follow: a run has not ended, or too much differs");
    }
    text
}

fn event(event: &Value) -> String {
    let part = |key: &str| event[key].as_str().unwrap_or_default();
    sanitize(format!("{} {}", part("type"), part("nodeId")).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_has_its_own_line() {
        let found = json!({"divergedAtSeq": 3, "eventDiffs": [
            {"seq": 3, "op": "changed", "aEvent": {"type": "node.completed", "nodeId": "why"},
                "bEvent": {"type": "node.failed", "nodeId": "why"}},
            {"seq": 4, "op": "added", "bEvent": {"type": "run.failed"}}],
            "stateDiff": {"status": {"a": "completed", "b": "failed"}}});
        let expected = "\
\u{20}SEQ     IN THE FIRST        IN THE SECOND
 3    ~  node.completed why  node.failed why
 4    +                      run.failed
status: {\"a\":\"completed\",\"b\":\"failed\"}";
        assert_eq!(describe_diff(&found), expected);
        let same = json!({"divergedAtSeq": null, "eventDiffs": [], "stateDiff": {}});
        assert_eq!(describe_diff(&same), "the runs do not differ");
    }
}
