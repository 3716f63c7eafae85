//! History pages as a browser uses them: a run at one event, forks from it, comparison of two runs.

use crate::console::{csrf, page, sign_in};
use crate::test_server::{Reply, TestServer, chain, hour, noop};
use serde_json::{Value, json};
use tandem_access::Scope;

/// A run that sets a variable, writes a memory entry, sets the variable again.
async fn run_with_memory(server: &TestServer) -> String {
    let nodes = [
        json!({"id": "one", "typeId": "core.setVariable", "config": {"name": "colour", "value": "red-1"}}),
        json!({"id": "note", "typeId": "vendor.tandem.memory",
               "config": {"action": "put", "key": "customer", "value": "Ada <b>", "tags": ["crm"]}}),
        json!({"id": "two", "typeId": "core.setVariable", "config": {"name": "colour", "value": "blue-2"}}),
    ];
    let mut document = chain("memo", &nodes);
    document["variables"] = json!([{"name": "colour", "type": "string", "defaultValue": "none-0"}]);
    let put = server.put("/v1/host/tandem/workflows/memo", document).await;
    assert!(put.status.is_success(), "{put:?}");
    server.create("memo").await
}

fn sequence(log: &Value, kind: &str, node: &str) -> u64 {
    let events = log["events"].as_array().unwrap();
    let found = events
        .iter()
        .find(|e| e["type"] == kind && e["nodeId"] == node);
    found.unwrap_or_else(|| panic!("no {kind} of {node}: {log}"))["sequence"]
        .as_u64()
        .unwrap()
}

async fn sent(server: &TestServer, cookie: &str, path: &str, form: String) -> Reply {
    let headers = [("cookie", cookie)];
    server.call_as("", "POST", path, &headers, form).await
}

/// The content of one panel of a page.
fn part<'a>(html: &'a str, name: &str) -> &'a str {
    let mark = format!("data-part=\"{name}\"");
    let (_, rest) = html
        .split_once(&mark)
        .unwrap_or_else(|| panic!("no {name}: {html}"));
    rest.split("data-part=").next().unwrap()
}

#[tokio::test]
async fn history_page_shows_state_at_each_event() {
    let server = TestServer::new().await;
    let run = run_with_memory(&server).await;
    let log = server.log(&run).await;
    let last = log["lastEventSeq"].as_u64().unwrap();
    let cookie = sign_in(&server).await;
    let at = |seq: u64| page_at(&server, &cookie, &run, seq);
    let first = at(0).await;
    assert!(part(&first, "variables").contains("none-0"));
    assert!(part(&first, "memory").contains("Nothing."));
    for name in ["graph", "nodes", "moment"] {
        let shown = part(&first, name);
        assert!(!shown.contains("completed"), "{name} is ahead: {shown}");
    }
    let noted = at(sequence(&log, "node.completed", "note")).await;
    assert!(part(&noted, "variables").contains("red-1"));
    let memory = part(&noted, "memory");
    assert!(
        memory.contains("customer") && memory.contains("Ada &lt;b&gt;") && memory.contains("crm")
    );
    let before = sequence(&log, "memory.written", "note") - 1;
    assert!(part(&at(before).await, "memory").contains("Nothing."));
    let end = at(last).await;
    assert!(part(&end, "variables").contains("blue-2"));
    assert!(part(&end, "moment").contains("completed"));
    // Every event has a page and a fragment.
    for seq in 0..=last {
        let path = format!("/console/runs/{run}/at/{seq}?fragment=1");
        let fragment = page(&server, &cookie, &path).await;
        assert_eq!(fragment.status.as_u16(), 200);
        assert!(fragment.text.contains(&format!("data-seq=\"{seq}\"")));
        assert!(!fragment.text.contains("<html"));
    }
}

async fn page_at(server: &TestServer, cookie: &str, run: &str, seq: u64) -> String {
    let reply = page(server, cookie, &format!("/console/runs/{run}/at/{seq}")).await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    reply.text
}

#[tokio::test]
async fn history_page_folds_only_up_to_the_chosen_event() {
    let server = TestServer::new().await;
    let nodes: Vec<Value> = (0..500)
        .map(|i| {
            json!({"id": format!("n{i}"), "typeId": "core.setVariable",
                   "config": {"name": "step", "value": format!("step-{i}-")}})
        })
        .collect();
    let run = server.start("long", &nodes).await;
    // The fork needs more than one decision.
    server.advance(0).await;
    let log = server.log(&run).await;
    let cookie = sign_in(&server).await;
    for i in [0, 1, 255, 499] {
        let seq = sequence(&log, "node.completed", &format!("n{i}"));
        let html = page_at(&server, &cookie, &run, seq).await;
        assert!(part(&html, "variables").contains(&format!("step-{i}-")));
        assert!(html.len() < 2_000_000);
    }
}

#[tokio::test]
async fn slider_works_without_script() {
    let server = TestServer::new().await;
    let run = run_with_memory(&server).await;
    let last = server.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let cookie = sign_in(&server).await;
    let path = format!("/console/runs/{run}");
    let own = page(&server, &cookie, &path).await.text;
    assert!(own.contains(&format!("href=\"{path}/history\"")));
    let newest = page(&server, &cookie, &format!("{path}/history")).await;
    assert_eq!(newest.header("location"), format!("{path}/at/{last}"));
    let chosen = page(&server, &cookie, &format!("{path}/history?seq=2")).await;
    assert_eq!(chosen.header("location"), format!("{path}/at/2"));
    for (seq, status) in [
        (format!("{}", last + 1), 422),
        ("-1".to_owned(), 400),
        ("x".to_owned(), 400),
        ("99999999999999999999999".to_owned(), 400),
    ] {
        let reply = page(&server, &cookie, &format!("{path}/at/{seq}")).await;
        assert_eq!(reply.status.as_u16(), status, "{seq}");
        assert!(reply.text.contains("What to do"));
    }
}

#[tokio::test]
async fn fork_form_starts_after_the_shown_event() {
    let server = TestServer::new().await;
    let run = run_with_memory(&server).await;
    let log = server.log(&run).await;
    let cookie = sign_in(&server).await;
    let seq = sequence(&log, "node.completed", "one");
    let html = page_at(&server, &cookie, &run, seq).await;
    let token = csrf(&html);
    assert!(html.contains(&format!("name=\"fromSeq\" value=\"{}\"", seq + 1)));
    let path = format!("/console/runs/{run}/fork");
    for mode in ["replay", "branch"] {
        let form = format!("csrf={token}&mode={mode}&fromSeq={}", seq + 1);
        let made = sent(&server, &cookie, &path, form).await;
        assert_eq!(made.status.as_u16(), 303, "{made:?}");
        let to = made.header("location").to_owned();
        let fork = to.rsplit('/').next().unwrap();
        let state = server.get(&format!("/v1/runs/{fork}")).await.ok(200);
        assert_eq!(state["forkedFrom"]["runId"], run.as_str());
        assert_eq!(state["forkedFrom"]["fromSeq"], seq + 1);
        assert_eq!(state["forkedFrom"]["mode"], mode);
        let shown = page(&server, &cookie, &to).await.text;
        assert!(shown.contains("Forked from") && shown.contains(&format!("as a {mode}")));
        let compare = format!("/console/runs/{run}/diff/{fork}");
        assert!(shown.contains(&compare));
        let compared = page(&server, &cookie, &compare).await;
        assert_eq!(compared.status.as_u16(), 200);
        assert!(compared.text.contains("side by side"));
    }
    // A refused fork is shown as a page.
    for (form, status) in [
        (format!("csrf={token}&mode=branch&fromSeq=9999"), 422),
        (format!("csrf={token}&mode=sideways&fromSeq=1"), 400),
        (format!("csrf={token}&mode=branch&fromSeq=x"), 400),
        ("mode=branch&fromSeq=1".to_owned(), 403),
    ] {
        let refused = sent(&server, &cookie, &path, form.clone()).await;
        assert_eq!(refused.status.as_u16(), status, "{form}");
        assert!(refused.text.contains("What to do"), "{form}");
    }
}

#[tokio::test]
async fn compare_page_shows_differences_of_two_runs() {
    let server = TestServer::new().await;
    let set = json!({"id": "set", "typeId": "core.setVariable", "config": {"name": "who"}});
    let mut document = chain("greet", &[set]);
    document["nodes"][0]["inputs"] = json!({"value": {"type": "variable", "variableName": "name"}});
    document["variables"] = json!([
        {"name": "name", "type": "string", "defaultValue": "nobody"},
        {"name": "who", "type": "string"}
    ]);
    let put = server
        .put("/v1/host/tandem/workflows/greet", document)
        .await;
    assert!(put.status.is_success(), "{put:?}");
    let start = async |name: &str| {
        let body = json!({"workflowId": "greet", "inputs": {"name": name}});
        let made = server.post("/v1/runs", body).await.ok(201);
        made["runId"].as_str().unwrap().to_owned()
    };
    let (a, b) = (start("Ada").await, start("<i>Bo</i>").await);
    let cookie = sign_in(&server).await;
    let found = page(&server, &cookie, &format!("/console/runs/{a}/diff/{b}"))
        .await
        .text;
    for part in [
        "Ada",
        "&lt;i&gt;Bo&lt;/i&gt;",
        "The runs differ from event",
        "op-changed",
        "variables",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(!found.contains("<i>Bo"));
    let same = page(&server, &cookie, &format!("/console/runs/{a}/diff/{a}"))
        .await
        .text;
    assert!(same.contains("The runs do not differ."));
    // A running run is compared up to its current state.
    let waits = server.start("waits", &[hour("a")]).await;
    let open = page(&server, &cookie, &format!("/console/runs/{a}/diff/{waits}"))
        .await
        .text;
    assert!(open.contains("has not ended"));
}

#[tokio::test]
async fn history_pages_enforce_access_control() {
    let server = TestServer::new().await;
    let run = run_with_memory(&server).await;
    let paths = [
        format!("/console/runs/{run}/history"),
        format!("/console/runs/{run}/at/1"),
        format!("/console/runs/{run}/diff/{run}"),
    ];
    for path in &paths {
        let stranger = server.call_as("", "GET", path, &[], "").await;
        assert_eq!(stranger.header("location"), "/console/login");
    }
    let key = server.new_key("elsewhere", Scope::all()).await;
    let own = chain("own", &[noop("a")]).to_string();
    let put = server.call_as(&key, "PUT", "/v1/host/tandem/workflows/own", &[], own);
    assert!(put.await.status.is_success());
    let other = session(&server, &key).await;
    for path in &paths {
        assert_eq!(
            page(&server, &other, path).await.status.as_u16(),
            404,
            "{path}"
        );
    }
    let token = csrf(&page(&server, &other, "/console/workflows").await.text);
    let fork = format!("/console/runs/{run}/fork");
    let form = format!("csrf={token}&mode=branch&fromSeq=1");
    assert_eq!(
        sent(&server, &other, &fork, form).await.status.as_u16(),
        404
    );
    // The scope to read does not permit creation.
    let scopes = [Scope::RunsRead, Scope::ManifestRead];
    let reader = session(&server, &server.new_key("default", &scopes).await).await;
    let shown = page(&server, &reader, &paths[1]).await.text;
    assert!(shown.contains("may not create runs") && !shown.contains("fromSeq"));
    let token = csrf(&page(&server, &reader, "/console/workflows/memo").await.text);
    let form = format!("csrf={token}&mode=branch&fromSeq=1");
    assert_eq!(
        sent(&server, &reader, &fork, form).await.status.as_u16(),
        403
    );
}

async fn session(server: &TestServer, key: &str) -> String {
    let form = format!("key={key}");
    let reply = server
        .call_as("", "POST", "/console/login", &[], form)
        .await;
    let set = reply.header("set-cookie");
    set.split(';').next().unwrap().to_owned()
}
