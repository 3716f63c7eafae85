//! A run's past in a browser's hands: moments, forks from them, two runs side by side.

use crate::console::{csrf, page, sign_in};
use crate::stage::{Reply, Stage, chain, hour, noop};
use serde_json::{Value, json};
use tandem_access::Scope;

/// Sets a variable, remembers something, sets the variable again.
async fn remembering(stage: &Stage) -> String {
    let nodes = [
        json!({"id": "one", "typeId": "core.setVariable", "config": {"name": "colour", "value": "red-1"}}),
        json!({"id": "note", "typeId": "vendor.tandem.memory",
               "config": {"action": "put", "key": "customer", "value": "Ada <b>", "tags": ["crm"]}}),
        json!({"id": "two", "typeId": "core.setVariable", "config": {"name": "colour", "value": "blue-2"}}),
    ];
    let mut document = chain("memo", &nodes);
    document["variables"] = json!([{"name": "colour", "type": "string", "defaultValue": "none-0"}]);
    let put = stage.put("/v1/host/tandem/workflows/memo", document).await;
    assert!(put.status.is_success(), "{put:?}");
    stage.create("memo").await
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

async fn sent(stage: &Stage, cookie: &str, path: &str, form: String) -> Reply {
    let headers = [("cookie", cookie)];
    stage.call_as("", "POST", path, &headers, form).await
}

/// What a panel shows, cut out of its page.
fn part<'a>(html: &'a str, name: &str) -> &'a str {
    let mark = format!("data-part=\"{name}\"");
    let (_, rest) = html
        .split_once(&mark)
        .unwrap_or_else(|| panic!("no {name}: {html}"));
    rest.split("data-part=").next().unwrap()
}

#[tokio::test]
async fn every_moment_shows_the_run_as_it_was() {
    let stage = Stage::new().await;
    let run = remembering(&stage).await;
    let log = stage.log(&run).await;
    let last = log["lastEventSeq"].as_u64().unwrap();
    let cookie = sign_in(&stage).await;
    let at = |seq: u64| page_at(&stage, &cookie, &run, seq);
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
    // Every one of them can be shown, whole and in parts.
    for seq in 0..=last {
        let path = format!("/console/runs/{run}/at/{seq}?fragment=1");
        let fragment = page(&stage, &cookie, &path).await;
        assert_eq!(fragment.status.as_u16(), 200);
        assert!(fragment.text.contains(&format!("data-seq=\"{seq}\"")));
        assert!(!fragment.text.contains("<html"));
    }
}

async fn page_at(stage: &Stage, cookie: &str, run: &str, seq: u64) -> String {
    let reply = page(stage, cookie, &format!("/console/runs/{run}/at/{seq}")).await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    reply.text
}

#[tokio::test]
async fn a_moment_of_a_long_log_is_folded_to_its_event_and_no_further() {
    let stage = Stage::new().await;
    let nodes: Vec<Value> = (0..500)
        .map(|i| {
            json!({"id": format!("n{i}"), "typeId": "core.setVariable",
                   "config": {"name": "step", "value": format!("step-{i}-")}})
        })
        .collect();
    let run = stage.start("long", &nodes).await;
    // It takes more than one decision.
    stage.advance(0).await;
    let log = stage.log(&run).await;
    let cookie = sign_in(&stage).await;
    for i in [0, 1, 255, 499] {
        let seq = sequence(&log, "node.completed", &format!("n{i}"));
        let html = page_at(&stage, &cookie, &run, seq).await;
        assert!(part(&html, "variables").contains(&format!("step-{i}-")));
        assert!(html.len() < 2_000_000);
    }
}

#[tokio::test]
async fn the_slider_works_as_a_form() {
    let stage = Stage::new().await;
    let run = remembering(&stage).await;
    let last = stage.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let cookie = sign_in(&stage).await;
    let path = format!("/console/runs/{run}");
    let own = page(&stage, &cookie, &path).await.text;
    assert!(own.contains(&format!("href=\"{path}/history\"")));
    let newest = page(&stage, &cookie, &format!("{path}/history")).await;
    assert_eq!(newest.header("location"), format!("{path}/at/{last}"));
    let chosen = page(&stage, &cookie, &format!("{path}/history?seq=2")).await;
    assert_eq!(chosen.header("location"), format!("{path}/at/2"));
    for (seq, status) in [
        (format!("{}", last + 1), 422),
        ("-1".to_owned(), 400),
        ("x".to_owned(), 400),
        ("99999999999999999999999".to_owned(), 400),
    ] {
        let reply = page(&stage, &cookie, &format!("{path}/at/{seq}")).await;
        assert_eq!(reply.status.as_u16(), status, "{seq}");
        assert!(reply.text.contains("What to do"));
    }
}

#[tokio::test]
async fn a_fork_begins_where_the_page_was() {
    let stage = Stage::new().await;
    let run = remembering(&stage).await;
    let log = stage.log(&run).await;
    let cookie = sign_in(&stage).await;
    let seq = sequence(&log, "node.completed", "one");
    let html = page_at(&stage, &cookie, &run, seq).await;
    let token = csrf(&html);
    assert!(html.contains(&format!("name=\"fromSeq\" value=\"{}\"", seq + 1)));
    let path = format!("/console/runs/{run}/fork");
    for mode in ["replay", "branch"] {
        let form = format!("csrf={token}&mode={mode}&fromSeq={}", seq + 1);
        let made = sent(&stage, &cookie, &path, form).await;
        assert_eq!(made.status.as_u16(), 303, "{made:?}");
        let to = made.header("location").to_owned();
        let fork = to.rsplit('/').next().unwrap();
        let state = stage.get(&format!("/v1/runs/{fork}")).await.ok(200);
        assert_eq!(state["forkedFrom"]["runId"], run.as_str());
        assert_eq!(state["forkedFrom"]["fromSeq"], seq + 1);
        assert_eq!(state["forkedFrom"]["mode"], mode);
        let shown = page(&stage, &cookie, &to).await.text;
        assert!(shown.contains("Forked from") && shown.contains(&format!("as a {mode}")));
        let compare = format!("/console/runs/{run}/diff/{fork}");
        assert!(shown.contains(&compare));
        let compared = page(&stage, &cookie, &compare).await;
        assert_eq!(compared.status.as_u16(), 200);
        assert!(compared.text.contains("side by side"));
    }
    // What cannot be forked is said as a page.
    for (form, status) in [
        (format!("csrf={token}&mode=branch&fromSeq=9999"), 422),
        (format!("csrf={token}&mode=sideways&fromSeq=1"), 400),
        (format!("csrf={token}&mode=branch&fromSeq=x"), 400),
        ("mode=branch&fromSeq=1".to_owned(), 403),
    ] {
        let refused = sent(&stage, &cookie, &path, form.clone()).await;
        assert_eq!(refused.status.as_u16(), status, "{form}");
        assert!(refused.text.contains("What to do"), "{form}");
    }
}

#[tokio::test]
async fn the_differences_of_two_runs_stand_side_by_side() {
    let stage = Stage::new().await;
    let set = json!({"id": "set", "typeId": "core.setVariable", "config": {"name": "who"}});
    let mut document = chain("greet", &[set]);
    document["nodes"][0]["inputs"] = json!({"value": {"type": "variable", "variableName": "name"}});
    document["variables"] = json!([
        {"name": "name", "type": "string", "defaultValue": "nobody"},
        {"name": "who", "type": "string"}
    ]);
    let put = stage.put("/v1/host/tandem/workflows/greet", document).await;
    assert!(put.status.is_success(), "{put:?}");
    let start = async |name: &str| {
        let body = json!({"workflowId": "greet", "inputs": {"name": name}});
        let made = stage.post("/v1/runs", body).await.ok(201);
        made["runId"].as_str().unwrap().to_owned()
    };
    let (a, b) = (start("Ada").await, start("<i>Bo</i>").await);
    let cookie = sign_in(&stage).await;
    let found = page(&stage, &cookie, &format!("/console/runs/{a}/diff/{b}"))
        .await
        .text;
    for part in [
        "Ada",
        "&lt;i&gt;Bo&lt;/i&gt;",
        "They part at event",
        "op-changed",
        "variables",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(!found.contains("<i>Bo"));
    let same = page(&stage, &cookie, &format!("/console/runs/{a}/diff/{a}"))
        .await
        .text;
    assert!(same.contains("They did the same."));
    // One that has not ended is compared as far as it is.
    let waits = stage.start("waits", &[hour("a")]).await;
    let open = page(&stage, &cookie, &format!("/console/runs/{a}/diff/{waits}"))
        .await
        .text;
    assert!(open.contains("Not both have ended"));
}

#[tokio::test]
async fn the_past_is_as_closed_as_the_present() {
    let stage = Stage::new().await;
    let run = remembering(&stage).await;
    let paths = [
        format!("/console/runs/{run}/history"),
        format!("/console/runs/{run}/at/1"),
        format!("/console/runs/{run}/diff/{run}"),
    ];
    for path in &paths {
        let stranger = stage.call_as("", "GET", path, &[], "").await;
        assert_eq!(stranger.header("location"), "/console/login");
    }
    let key = stage.new_key("elsewhere", Scope::all()).await;
    let own = chain("own", &[noop("a")]).to_string();
    let put = stage.call_as(&key, "PUT", "/v1/host/tandem/workflows/own", &[], own);
    assert!(put.await.status.is_success());
    let other = session(&stage, &key).await;
    for path in &paths {
        assert_eq!(
            page(&stage, &other, path).await.status.as_u16(),
            404,
            "{path}"
        );
    }
    let token = csrf(&page(&stage, &other, "/console/workflows").await.text);
    let fork = format!("/console/runs/{run}/fork");
    let form = format!("csrf={token}&mode=branch&fromSeq=1");
    assert_eq!(sent(&stage, &other, &fork, form).await.status.as_u16(), 404);
    // Reading is not creating.
    let scopes = [Scope::RunsRead, Scope::ManifestRead];
    let reader = session(&stage, &stage.new_key("default", &scopes).await).await;
    let shown = page(&stage, &reader, &paths[1]).await.text;
    assert!(shown.contains("may not create runs") && !shown.contains("fromSeq"));
    let token = csrf(&page(&stage, &reader, "/console/workflows/memo").await.text);
    let form = format!("csrf={token}&mode=branch&fromSeq=1");
    assert_eq!(
        sent(&stage, &reader, &fork, form).await.status.as_u16(),
        403
    );
}

async fn session(stage: &Stage, key: &str) -> String {
    let form = format!("key={key}");
    let reply = stage.call_as("", "POST", "/console/login", &[], form).await;
    let set = reply.header("set-cookie");
    set.split(';').next().unwrap().to_owned()
}
