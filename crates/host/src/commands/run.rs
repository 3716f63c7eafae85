//! `tandem run`: starts a run and waits for it. The exit code tells a script the result.

use super::argument_value;
use super::timeline::{Timeline, format_duration, format_error};
use crate::cli::RunArgs;
use crate::client::{Client, Follower, encode_segment};
use crate::failure::Failure;
use crate::output::{self, Colour, Style, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// The state of a run, as far as this command needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Completed,
    Failed,
    Cancelled,
    Waiting,
    InProgress,
}

impl Outcome {
    fn of(snapshot: &Value) -> Self {
        match snapshot["status"].as_str() {
            Some("completed") => Self::Completed,
            Some("failed") => Self::Failed,
            Some("cancelled") => Self::Cancelled,
            Some(status) if status.starts_with("waiting-") => Self::Waiting,
            _ => Self::InProgress,
        }
    }

    fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Cancelled => 2,
            Self::Waiting | Self::InProgress => 3,
        }
    }
}

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let mut body = json!({"workflowId": args.workflow, "inputs": inputs(args.input.as_deref())?});
    if !args.tags.is_empty() {
        body["tags"] = json!(args.tags);
    }
    let key = args.idempotency_key.as_deref();
    let created = client.post_idempotent("/v1/runs", &body, key).await?;
    let run = created["runId"].as_str().unwrap_or_default().to_owned();
    let path = format!("/v1/runs/{}", encode_segment(&run));

    let json = args.connection.json;
    if !json {
        let line = format!("{run}  {}", client.url(&path));
        output::line(Style::of_stdout().paint(Colour::Dim, &line))?;
    }
    if args.follow {
        follow(&client, &run, json).await?;
    } else {
        wait(&client, &path).await?;
    }
    let snapshot = client.get(&path).await?;
    let outcome = Outcome::of(&snapshot);
    if args.follow && !json {
        let primary = primary_output(&client, &snapshot).await;
        output::line(result(&snapshot, primary.as_ref(), Style::of_stdout()))?;
    } else if json && !args.follow {
        output::json(&snapshot)?;
    } else if !json {
        output::line(final_line(&snapshot, Style::of_stdout()))?;
    }
    Ok(ExitCode::from(outcome.exit_code()))
}

/// Shows events until the run ends.
async fn follow(client: &Client, run: &str, json: bool) -> anyhow::Result<()> {
    let mut follower = Follower::of_run(client, run, "debug");
    let mut timeline = Timeline::new(Style::of_stdout());
    while let Some(frame) = follower.next().await? {
        if json {
            output::line(&frame.data)?;
        } else {
            output::line(timeline.line(&serde_json::from_str(&frame.data)?))?;
        }
    }
    Ok(())
}

/// Polls without output until the run ends or waits for a person.
async fn wait(client: &Client, path: &str) -> anyhow::Result<()> {
    let mut pause = Duration::from_millis(50);
    loop {
        match Outcome::of(&client.get(path).await?) {
            Outcome::InProgress => tokio::time::sleep(pause).await,
            _ => return Ok(()),
        }
        pause = (pause * 3 / 2).min(Duration::from_secs(1));
    }
}

fn inputs(given: Option<&str>) -> anyhow::Result<Value> {
    let Some(given) = given else {
        return Ok(json!({}));
    };
    let text = argument_value::read(given, "inputs", "--input")?;
    let wrong = |why: String| {
        let next = "Pass something like --input '{\"name\": \"Ada\"}'.";
        Failure::new(format!("the inputs are not a JSON object: {why}"), next)
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(inputs)) => Ok(Value::Object(inputs)),
        Ok(_) => Err(wrong("they are another kind of value".to_owned()).into()),
        Err(error) => Err(wrong(error.to_string()).into()),
    }
}

/// The primary result: the outputs of the one node with that role.
async fn primary_output(client: &Client, snapshot: &Value) -> Option<Value> {
    if Outcome::of(snapshot) != Outcome::Completed {
        return None;
    }
    // A failure is ignored: a key that may not read the workflow sees all outputs.
    let workflow = format!(
        "/v1/workflows/{}",
        encode_segment(snapshot["workflowId"].as_str()?)
    );
    let document = client.get(&workflow).await.ok()?;
    let node = primary_node(&document)?;
    let run = encode_segment(snapshot["runId"].as_str()?);
    let log = client.get(&format!("/v1/runs/{run}/events")).await.ok()?;
    let events = log["events"].as_array()?.iter().rev();
    let mut ends = events.filter(|e| e["type"] == "node.completed" && e["nodeId"] == node);
    Some(ends.next()?["payload"]["outputs"].clone())
}

fn primary_node(document: &Value) -> Option<&str> {
    let nodes = document["nodes"].as_array()?.iter();
    let mut primary = nodes.filter(|node| node["outputRole"] == "primary");
    let first = primary.next()?["id"].as_str()?;
    primary.next().is_none().then_some(first)
}

/// What to show below the timeline.
fn result(snapshot: &Value, primary: Option<&Value>, style: Style) -> String {
    let shown = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    match Outcome::of(snapshot) {
        Outcome::Completed => shown(primary.unwrap_or(&snapshot["outputs"])),
        _ => final_line(snapshot, style),
    }
}

/// One line with the status.
fn final_line(snapshot: &Value, style: Style) -> String {
    let status = snapshot["status"].as_str().unwrap_or("unknown");
    let took = || {
        let time = |key: &str| snapshot[key].as_str()?.parse::<jiff::Timestamp>().ok();
        let (began, ended) = (time("startedAt")?, time("endedAt")?);
        Some(format_duration(
            ended.as_millisecond() - began.as_millisecond(),
        ))
    };
    let took = took().map_or(String::new(), |took| format!(" in {took}"));
    match Outcome::of(snapshot) {
        Outcome::Completed => {
            let status = style.paint(Colour::Green, "completed");
            format!(
                "{status}{took} {}",
                sanitize(&snapshot["outputs"].to_string())
            )
        }
        Outcome::Failed => {
            let status = style.paint(Colour::Red, "failed");
            format!(
                "{status}{took}: {}",
                sanitize(&format_error(&snapshot["error"]))
            )
        }
        Outcome::Cancelled => format!("{}{took}", style.paint(Colour::Yellow, "cancelled")),
        Outcome::Waiting | Outcome::InProgress => {
            let status = style.paint(Colour::Yellow, status);
            match snapshot["currentNodeId"].as_str() {
                Some(node) => format!("{status} at {}", sanitize(node)),
                None => status,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_follows_the_status() {
        let table = [
            ("completed", 0),
            ("failed", 1),
            ("cancelled", 2),
            ("waiting-approval", 3),
            ("waiting-input", 3),
            ("waiting-external", 3),
        ];
        for (status, code) in table {
            assert_eq!(
                Outcome::of(&json!({"status": status})).exit_code(),
                code,
                "{status}"
            );
        }
        for status in ["pending", "running", "paused", "cancelling", "some-day"] {
            assert_eq!(
                Outcome::of(&json!({"status": status})),
                Outcome::InProgress,
                "{status}"
            );
        }
    }

    #[test]
    fn inputs_are_an_object_or_refused() {
        assert_eq!(inputs(None).unwrap(), json!({}));
        assert_eq!(inputs(Some("{\"a\": 1}")).unwrap(), json!({"a": 1}));
        for wrong in ["[1]", "{", "@/no/such/file"] {
            assert!(inputs(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn final_line_shows_the_outcome() {
        let line = |snapshot: Value| final_line(&snapshot, Style::PLAIN);
        let times = json!({"status": "completed", "outputs": {"a": 1},
            "startedAt": "2026-01-01T00:00:00.000Z", "endedAt": "2026-01-01T00:00:01.500Z"});
        assert_eq!(line(times), "completed in 1.5 s {\"a\":1}");
        let failed =
            json!({"status": "failed", "error": {"code": "run_timeout", "message": "Too long."}});
        assert_eq!(line(failed), "failed: [run_timeout] Too long.");
        let waiting = json!({"status": "waiting-approval", "currentNodeId": "gate"});
        assert_eq!(line(waiting), "waiting-approval at gate");
    }

    #[test]
    fn result_is_the_output_of_a_single_primary_node() {
        let node = |id: &str, role: &str| json!({"id": id, "outputRole": role});
        let one = json!({"nodes": [node("a", "secondary"), node("b", "primary")]});
        assert_eq!(primary_node(&one), Some("b"));
        let two = json!({"nodes": [node("a", "primary"), node("b", "primary")]});
        assert_eq!(primary_node(&two), None);
    }
}
