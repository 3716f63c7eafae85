//! Workflows that start by the clock, through HTTP and the command line, on a host without agents.

use super::server::{KEY, Server};
use super::{HOST, clock_at, list, ok, read, settle};
use serde_json::{Value, json};

fn server() -> Server {
    let server = Server::with_seams();
    clock_at(&server, "2031-03-03T08:30:05Z");
    server
}

/// A workflow of one node with a schedule trigger.
fn document(node: &str, config: &Value) -> Value {
    json!({
        "id": "report", "name": "Report", "version": "1.0.0",
        "nodes": [{"id": node, "typeId": "core.noop", "name": node,
            "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}],
        "edges": [], "metadata": {}, "settings": {},
        "variables": [{"name": "note", "type": "string"}],
        "triggers": [{"id": "manual", "type": "manual"},
            {"id": "daily", "type": "schedule", "config": config}],
    })
}

fn put(server: &Server, document: &Value) -> (u16, Value) {
    let path = format!("{HOST}/workflows/report");
    read(&server.request_as(KEY, "PUT", &path, &document.to_string()))
}

fn registered(server: &Server, document: &Value) {
    let (status, body) = put(server, document);
    assert!(status < 300, "{status} {body}");
}

fn schedules(server: &Server) -> Vec<Value> {
    list(server, "/schedules?workflowId=report", "schedules")
}

fn occurrences(server: &Server) -> Vec<Value> {
    settle(server);
    let found = schedules(server);
    let id = found[0]["id"].as_str().expect("an id");
    list(server, &format!("/schedules/{id}/runs"), "runs")
}

fn runs(server: &Server) -> Vec<Value> {
    let listed = ok(&server.get("/v1/runs?workflowId=report"));
    listed["runs"].as_array().expect("a list").clone()
}

#[test]
fn occurrence_starts_a_run_that_names_its_trigger() {
    let server = server();
    let config = json!({"cron": "0 10 * * *", "timezone": "Europe/Berlin",
        "inputs": {"note": "hello"}});
    registered(&server, &document("a", &config));
    let found = schedules(&server);
    let [schedule] = &found[..] else {
        panic!("one schedule: {found:?}");
    };
    let shown = |name: &str| schedule[name].clone();
    assert_eq!(shown("targetKind"), "workflow");
    assert_eq!(
        (shown("workflowId"), shown("triggerId")),
        (json!("report"), json!("daily"))
    );
    assert_eq!(
        (shown("cronExpr"), shown("timezone")),
        (json!("0 10 * * *"), json!("Europe/Berlin"))
    );
    assert_eq!(shown("nextRunAt"), "2031-03-03T09:00:00.000Z");
    assert_eq!(shown("createdBy")["plane"], "workflow");
    for of_conversations in ["agentId", "flowId", "allowSessionBootstrap", "onActiveFlow"] {
        assert_eq!(schedule.get(of_conversations), None);
    }
    clock_at(&server, "2031-03-03T09:00:05Z");
    let seen = occurrences(&server);
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (&seen[0]["outcome"], &seen[0]["counts"]["success"]),
        (&json!("success"), &json!(1))
    );
    let run = seen[0]["runId"].as_str().expect("a run");
    let snapshot = ok(&server.get(&format!("/v1/runs/{run}")));
    assert_eq!(snapshot["status"], "completed", "{snapshot}");
    let trigger = json!({"scheduledFor": "2031-03-03T09:00:00.000Z", "triggerId": "daily"});
    assert_eq!(snapshot["metadata"]["triggerData"], trigger);
    assert_eq!(snapshot["variables"]["note"], "hello");
    // The clock may be looked at as often as anybody likes.
    clock_at(&server, "2031-03-03T09:00:30Z");
    assert_eq!(runs(&server).len(), 1);
}

#[test]
fn restart_loses_and_repeats_nothing() {
    let mut server = server();
    registered(
        &server,
        &document("a", &json!({"at": "2031-03-03T09:00:00Z"})),
    );
    server.terminate();
    server.start_again();
    clock_at(&server, "2031-03-03T09:00:05Z");
    assert_eq!(occurrences(&server).len(), 1);
    server.terminate();
    server.start_again();
    settle(&server);
    assert_eq!(runs(&server).len(), 1);
    assert_eq!(schedules(&server)[0]["status"], "completed");
}

#[test]
fn schedule_follows_its_document_and_ends_with_it() {
    let server = server();
    registered(&server, &document("a", &json!({"cron": "0 9 * * *"})));
    registered(&server, &document("b", &json!({"cron": "0 10 * * *"})));
    let found = schedules(&server);
    assert_eq!(found.len(), 1, "it is replaced: {found:?}");
    assert_eq!(found[0]["nextRunAt"], "2031-03-03T10:00:00.000Z");
    let deleted = server.request_as(KEY, "DELETE", &format!("{HOST}/workflows/report"), "");
    assert!(read(&deleted).0 < 300, "{deleted}");
    assert_eq!(schedules(&server)[0]["status"], "canceled");
    clock_at(&server, "2031-03-03T10:00:05Z");
    assert!(occurrences(&server).is_empty());
}

#[test]
fn triggers_that_cannot_work_are_refused_with_their_place() {
    let server = server();
    for (config, place) in [
        (json!({"cron": "0 9 31 2 *"}), "/triggers/1/config/cron"),
        (
            json!({"cron": "0 9 * * *", "timezone": "Mars/Base"}),
            "/triggers/1/config/timezone",
        ),
        (
            json!({"at": "2031-03-03T08:00:00Z"}),
            "/triggers/1/config/at",
        ),
        (
            json!({"cron": "0 9 * * *", "inputs": {"note": 5}}),
            "/triggers/1/config/inputs/note",
        ),
    ] {
        let (status, body) = put(&server, &document("a", &config));
        assert_eq!(
            (status, &body["error"]),
            (400, &json!("validation_error")),
            "{body}"
        );
        assert_eq!(body["details"]["errors"][0]["path"], place, "{body}");
    }
    let (status, body) = put(
        &server,
        &document("a", &json!({"at": "2051-03-03T08:00:00Z"})),
    );
    assert_eq!(
        (status, &body["error"]),
        (400, &json!("schedule_horizon_exceeded"))
    );
    let horizon = &body["details"]["maxFutureHorizon"];
    let discovered = ok(&server.get("/.well-known/openwop"));
    assert_eq!(
        discovered["scheduling"],
        json!({"supported": true, "cron": true, "delayed": true, "calendar": false,
            "maxFutureHorizon": horizon})
    );
    assert!(schedules(&server).is_empty());
}

#[test]
fn scopes_of_keys_decide_who_pauses_and_cancels() {
    let server = server();
    registered(&server, &document("a", &json!({"cron": "0 9 * * *"})));
    let id = schedules(&server)[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let key = |scopes: &[&str]| {
        let body = json!({"name": "x", "scopes": scopes}).to_string();
        let made = ok(&server.post(&format!("{HOST}/keys"), &[], &body));
        made["secret"].as_str().expect("a secret").to_owned()
    };
    let reader = key(&["runs:read"]);
    let starter = key(&["runs:read", "runs:create"]);
    let path = format!("{HOST}/schedules/{id}");
    let asked = |key: &str, method: &str, action: &str, body: &str| {
        read(&server.request_as(key, method, &format!("{path}{action}"), body))
    };
    assert_eq!(asked(&reader, "POST", "/pause", "").0, 403);
    let (status, paused) = asked(&starter, "POST", "/pause", "");
    assert_eq!((status, &paused["status"]), (200, &json!("paused")));
    clock_at(&server, "2031-03-03T09:00:05Z");
    assert!(occurrences(&server).is_empty());
    assert_eq!(
        asked(&starter, "POST", "/resume", "").1["nextRunAt"],
        "2031-03-04T09:00:00.000Z"
    );
    let (status, refused) = asked(&starter, "PATCH", "", r#"{"input": {}}"#);
    assert_eq!(
        (status, &refused["error"]),
        (400, &json!("validation_error")),
        "{refused}"
    );
    assert_eq!(asked(&starter, "DELETE", "", "").0, 403);
    assert_eq!(asked(KEY, "DELETE", "", "").1["status"], "canceled");
}

#[test]
fn command_line_shows_schedules_of_workflows_and_their_runs() {
    let server = server();
    registered(&server, &document("a", &json!({"cron": "0 9 * * *"})));
    let id = schedules(&server)[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    clock_at(&server, "2031-03-03T09:00:05Z");
    let run = occurrences(&server)[0]["runId"]
        .as_str()
        .expect("a run")
        .to_owned();
    let printed = |args: &[&str]| {
        let output = server.run(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let listed = printed(&["schedules", "list", "--workflow", "report"]);
    assert!(
        listed.contains("workflow report") && listed.contains("trigger daily"),
        "{listed}"
    );
    assert!(printed(&["schedules", "show", &id]).contains("report"));
    assert!(printed(&["schedules", "runs", &id]).contains(&run));
    assert!(printed(&["schedules", "pause", &id]).contains("paused"));
}
