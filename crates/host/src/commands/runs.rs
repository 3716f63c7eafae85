//! `tandem runs`: reading and controlling runs.

use super::table::{table, table_without_header};
use super::timeline::{Timeline, format_duration, format_error};
use super::{ancestry, forks};
use crate::cli::{EventsArgs, ListArgs, RunsCommand, StreamMode};
use crate::client::{Client, Follower, Frame, encode_segment};
use crate::output::{self, Style, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The server's maximum page size.
const MAX_PAGE: usize = 100;

pub(crate) async fn runs(command: RunsCommand) -> anyhow::Result<ExitCode> {
    match command {
        RunsCommand::List(args) => list(args).await?,
        RunsCommand::Show(args) => {
            let client = Client::connect(&args.connection)?;
            let snapshot = client.get(&run_path(&args.run)).await?;
            if args.connection.json {
                output::json(&snapshot)?;
            } else {
                output::line(details(&snapshot))?;
            }
        }
        RunsCommand::Events(args) => events(args).await?,
        RunsCommand::Cancel(args) => {
            let client = Client::connect(&args.connection)?;
            let path = format!("{}/cancel", run_path(&args.run));
            let answer = client.post(&path, &reason(args.reason)).await?;
            report(&answer, args.connection.json)?;
        }
        RunsCommand::Pause { run: args, now } => {
            let client = Client::connect(&args.connection)?;
            let mut body = reason(args.reason);
            if now {
                body["drainPolicy"] = json!("immediate");
            }
            let answer = client
                .post(&format!("{}:pause", run_path(&args.run)), &body)
                .await?;
            report(&answer, args.connection.json)?;
        }
        RunsCommand::Fork(args) => forks::fork(args).await?,
        RunsCommand::Diff(args) => return forks::diff(args).await,
        RunsCommand::Ancestry(args) => ancestry::show(args).await?,
        RunsCommand::Resume(args) => {
            let client = Client::connect(&args.connection)?;
            let path = format!("{}:resume", run_path(&args.run));
            let answer = client.post(&path, &reason(args.reason)).await?;
            report(&answer, args.connection.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run_path(run: &str) -> String {
    format!("/v1/runs/{}", encode_segment(run))
}

fn reason(reason: Option<String>) -> Value {
    match reason {
        Some(reason) => json!({"reason": reason}),
        None => json!({}),
    }
}

pub(super) fn report(answer: &Value, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        output::json(answer)?;
    } else {
        let part = |key: &str| sanitize(answer[key].as_str().unwrap_or("?"));
        output::line(format!("{} {}", part("runId"), part("status")))?;
    }
    Ok(())
}

async fn list(args: ListArgs) -> anyhow::Result<()> {
    let client = Client::connect(&args.connection)?;
    let mut runs = Vec::new();
    let mut cursor = None;
    // Fetches pages until there are enough rows or no more.
    while runs.len() < args.limit {
        let page_limit = (args.limit - runs.len()).min(MAX_PAGE);
        let page = client
            .query(
                "/v1/runs",
                &[
                    ("status", args.status.map(|s| s.as_str().to_owned())),
                    ("workflowId", args.workflow.clone()),
                    ("limit", Some(page_limit.to_string())),
                    ("cursor", cursor),
                ],
            )
            .await?;
        runs.extend(page["runs"].as_array().cloned().unwrap_or_default());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    if args.connection.json {
        output::json(&json!({"runs": runs}))?;
    } else if runs.is_empty() {
        output::note("no runs; start one with `tandem run WORKFLOW`");
    } else {
        let now = jiff::Timestamp::now();
        output::line(listing(&runs, now))?;
    }
    Ok(())
}

fn listing(runs: &[Value], now: jiff::Timestamp) -> String {
    let mut table = table(["RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK"]);
    for run in runs {
        let part = |key: &str| sanitize(run[key].as_str().unwrap_or_default());
        let time = |key: &str| run[key].as_str()?.parse::<jiff::Timestamp>().ok();
        let began = time("createdAt");
        let since = |from: jiff::Timestamp, to: jiff::Timestamp| {
            format_duration(to.as_millisecond() - from.as_millisecond())
        };
        let ago = began.map(|at| format!("{} ago", since(at, now)));
        let took = began.zip(time("endedAt")).map(|(from, to)| since(from, to));
        table.add_row([
            part("runId"),
            part("workflowId"),
            part("status"),
            ago.unwrap_or_default(),
            took.unwrap_or_default(),
        ]);
    }
    table.trim_fmt()
}

/// All details of a run.
fn details(run: &Value) -> String {
    let text = |key: &str| sanitize(run[key].as_str().unwrap_or_default());
    let mut head = table_without_header();
    for (label, key) in [
        ("run", "runId"),
        ("workflow", "workflowId"),
        ("status", "status"),
        ("started", "startedAt"),
        ("ended", "endedAt"),
        ("parent", "parentRunId"),
        ("waits at", "currentNodeId"),
    ] {
        if !run[key].is_null() {
            head.add_row([label.to_owned(), text(key)]);
        }
    }
    if run["error"].is_object() {
        head.add_row(["error".to_owned(), sanitize(&format_error(&run["error"]))]);
    }
    for (label, key) in [("inputs", "inputs"), ("outputs", "outputs")] {
        if run[key].as_object().is_some_and(|o| !o.is_empty()) {
            head.add_row([label.to_owned(), sanitize(&run[key].to_string())]);
        }
    }
    let mut nodes = table(["NODE", "STATUS", "ATTEMPT", "ERROR"]);
    for (node, state) in run["nodeStates"].as_object().into_iter().flatten() {
        let error = &state["error"];
        // Attempts count from zero, and only for a node that has started.
        let attempt = state["attempt"]
            .as_u64()
            .filter(|_| !state["startedAt"].is_null());
        nodes.add_row([
            sanitize(node),
            sanitize(state["status"].as_str().unwrap_or_default()),
            attempt.map_or(String::new(), |n| (n + 1).to_string()),
            if error.is_object() {
                sanitize(&format_error(error))
            } else {
                String::new()
            },
        ]);
    }
    format!("{}\n\n{}", head.trim_fmt(), nodes.trim_fmt())
}

async fn events(args: EventsArgs) -> anyhow::Result<()> {
    let client = Client::connect(&args.connection)?;
    let mut timeline = Timeline::new(Style::of_stdout());
    let mut show = |event: &Value| {
        if args.connection.json {
            output::json_line(event)
        } else {
            output::line(one_line(args.mode, event, &mut timeline))
        }
    };
    if args.follow {
        let mut follower = Follower::of_run(&client, &args.run, args.mode.as_str());
        while let Some(Frame { data, .. }) = follower.next().await? {
            show(&serde_json::from_str(&data)?)?;
        }
        return Ok(());
    }
    let path = format!("{}/events", run_path(&args.run));
    let log = client.get(&path).await?;
    for event in log["events"].as_array().into_iter().flatten() {
        show(event)?;
    }
    Ok(())
}

/// Not every mode streams events: `values` streams runs, `messages` streams chunks of text.
fn one_line(mode: StreamMode, shown: &Value, timeline: &mut Timeline) -> String {
    match mode {
        StreamMode::Values => {
            let part = |key: &str| sanitize(shown[key].as_str().unwrap_or_default());
            let variables = sanitize(&shown["variables"].to_string());
            format!("{} {variables}", part("status"))
        }
        StreamMode::Messages => sanitize(shown["chunk"].as_str().unwrap_or_default()),
        StreamMode::Updates | StreamMode::Debug => timeline.line(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_one_row_per_run() {
        let runs = [
            json!({"runId": "run-1", "workflowId": "hello", "status": "completed",
                "createdAt": "2026-01-01T00:00:00Z", "endedAt": "2026-01-01T00:00:02.5Z"}),
            json!({"runId": "run-2", "workflowId": "order-pipeline", "status": "running",
                "createdAt": "2026-01-01T00:00:50Z", "endedAt": null}),
        ];
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let expected = "\
\u{20}RUN    WORKFLOW        STATUS     STARTED       TOOK
 run-1  hello           completed  1 m 00 s ago  2.5 s
 run-2  order-pipeline  running    10.0 s ago";
        assert_eq!(listing(&runs, now), expected);
    }

    #[test]
    fn details_show_present_fields_only() {
        let run = json!({"runId": "run-1", "workflowId": "w", "status": "failed", "inputs": {},
            "error": {"code": "boom", "message": "It broke."},
            "nodeStates": {"a": {"status": "failed", "attempt": 1, "startedAt": "2026-01-01T00:00:00Z",
                "error": {"code": "boom", "message": "It broke."}}}});
        let text = details(&run);
        assert!(text.contains("error     [boom] It broke."), "{text}");
        assert!(
            text.contains(" a     failed  2        [boom] It broke."),
            "{text}"
        );
        assert!(!text.contains("inputs"), "{text}");
    }
}
