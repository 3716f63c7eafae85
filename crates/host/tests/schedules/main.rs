//! Schedules and campaigns with the real binary: who is addressed, what survives a crash, the tools of users, the
//! routes and the command line.

mod campaigns;
#[path = "../server/mod.rs"]
mod server;
mod workflows;

use serde_json::{Value, json};
use server::{KEY, Server};
use std::collections::BTreeMap;

const HOST: &str = "/v1/host/tandem";
const BOSS: (&str, &str) = ("X-Admin-Token", "boss-token");

const AGENT: &str = r"
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You run a desk.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'model speaks' } } },
  rateLimitPerUserPerMinute: 1000,
  adminAuth: {
    tokens: [{ hash: 'sha256:673e0b86626e1976dc1d5d4723c64674b0057b4f5b0f65f51758814a3d82c458', actorId: 'ana', role: 'boss' }],
    chat: [], roles: { boss: ['schedule.manage', 'audit.view'] },
  },
  tools: [{ name: 'pay', kind: 'record', returns: { ok: true } }],
  consent: { stopKeywords: ['stop'], startKeywords: ['start again'] },
  scheduler: { tools: true, timezone: 'Europe/Berlin' },
  schedules: { nightly: { flowId: 'tick', trigger: { type: 'cron', expr: '0 3 * * *' },
    target: { kind: 'user', userExternalId: 'night-owl' } } },
  beforeLLM: (input) => {
    const m = /^call (\w+) (.*)$/s.exec(input.text);
    if (m) return { action: 'route_flow', flowId: 'call', input: { tool: m[1], args: JSON.parse(m[2]) } };
  },
  flows: {
    tick: async function* (ctx) { yield { type: 'say', text: 'tick for ' + ctx.user.externalUserId }; },
    paying: async function* (ctx) {
      yield { type: 'tool', name: 'pay', args: { attempt: ctx.schedule.runAttempt } };
      yield { type: 'say', text: 'paid' };
    },
    call: async function* (ctx) {
      const r = yield { type: 'tool', name: ctx.input.tool, args: ctx.input.args, onError: 'return' };
      yield { type: 'say', text: JSON.stringify(r) };
    },
  },
});
";

fn desk() -> Server {
    let server = Server::with_agent_and_seams("desk", "agent.ts", AGENT);
    clock_at(&server, "2031-03-03T08:30:05Z");
    server
}

fn read(answer: &str) -> (u16, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    (status.expect("a status"), body)
}

fn ok(answer: &str) -> Value {
    let (status, body) = read(answer);
    assert!((200..300).contains(&status), "{answer}");
    body
}

fn clock_at(server: &Server, instant: &str) {
    let body = json!({ "set": instant }).to_string();
    let moved = ok(&server.post(&format!("{HOST}/test/clock"), &[], &body));
    assert_eq!(moved["settled"], true, "{moved}");
}

fn settle(server: &Server) {
    let body = json!({"advanceSeconds": 0}).to_string();
    ok(&server.post(&format!("{HOST}/test/clock"), &[], &body));
}

fn send(server: &Server, from: &str, text: &str) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"messageId": id, "from": from, "body": text});
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    ok(&server.post(&path, &[], &body.to_string()))
}

/// Starts the flow that calls a tool, and gives what it got.
fn call(server: &Server, from: &str, tool: &str, args: &Value) -> Value {
    let answer = send(server, from, &format!("call {tool} {args}"));
    let text = answer["outbound"][0]["text"].as_str().expect("a text");
    serde_json::from_str(text).expect("the flow says JSON")
}

fn delivered(server: &Server, to: &str) -> Vec<String> {
    settle(server);
    let sent = ok(&server.get(&format!("{HOST}/test/outbound?to={to}")));
    let sent = sent["messages"].as_array().expect("a list").iter();
    let texts = sent.filter_map(|message| message["text"].as_str());
    texts.map(str::to_owned).collect()
}

fn create(server: &Server, definition: Value) -> Value {
    let mut body = json!({"agentId": "desk", "flowId": "tick"});
    let fields = definition.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);
    let path = format!("{HOST}/schedules");
    ok(&server.post(&path, &[BOSS], &body.to_string()))
}

fn once(time: &str) -> Value {
    json!({"type": "once", "runAt": format!("2031-03-03T{time}:00Z")})
}

fn for_user(user: &str) -> Value {
    json!({"kind": "user", "userExternalId": user})
}

fn campaign(segment: Value) -> Value {
    json!({"kind": "segment", "campaignId": "spring", "segment": segment})
}

fn list(server: &Server, path: &str, noun: &str) -> Vec<Value> {
    let listed = ok(&server.get_with(&format!("{HOST}{path}"), &[BOSS]));
    listed[noun].as_array().expect("a list").clone()
}

fn runs(server: &Server, schedule: &Value) -> Vec<Value> {
    settle(server);
    let id = schedule["id"].as_str().expect("an id");
    list(server, &format!("/schedules/{id}/runs"), "runs")
}

fn recipients(server: &Server, run: &Value) -> BTreeMap<String, String> {
    let id = run["id"].as_str().expect("an id");
    let path = format!("/schedule-runs/{id}/recipients");
    let found = list(server, &path, "recipients").into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found
        .map(|one| (text(&one["userExternalId"]), text(&one["outcome"])))
        .collect()
}

fn tag(server: &Server, user: &str, change: &Value) {
    let users = list(server, "/agents/desk/users", "users");
    let found = users.iter().find(|found| found["externalUserId"] == user);
    let id = found.expect("a user")["id"].as_str().expect("an id");
    let path = format!("{HOST}/users/{id}");
    ok(&server.request_as(KEY, "PATCH", &path, &change.to_string()));
}

fn users(names: &[&str]) -> BTreeMap<String, String> {
    let all = names.iter();
    all.map(|name| ((*name).to_owned(), "success".to_owned()))
        .collect()
}

/// Z-178, Z-179 (half: another user's schedule is refused like one that does not exist),
/// Z-177 (half: what the tools make, change, list and cancel)
#[test]
fn user_manages_own_schedules_and_nobody_elses() {
    let server = desk();
    let made = call(
        &server,
        "u1",
        "createCurrentUserSchedule",
        &json!({"flowId": "tick", "trigger": {"type": "once", "runAt": "2031-03-03T11:00:00"},
            "allowSessionBootstrap": true, "metadata": {"note": "x"}}),
    );
    // Without an offset it is read in the zone of the agent.
    assert_eq!(made["nextRunAt"], "2031-03-03T10:00:00.000Z");
    assert!(made.get("target").is_none(), "{made}");
    let id = made["id"].clone();
    let args =
        json!({"scheduleId": id, "trigger": {"type": "once", "runAt": "2031-03-03T09:30:00Z"}});
    let changed = call(&server, "u1", "updateCurrentUserSchedule", &args);
    assert_eq!(
        (&changed["version"], &changed["metadata"]),
        (&json!(2), &json!({"note": "x"}))
    );
    let listed = call(
        &server,
        "u1",
        "listCurrentUserSchedules",
        &json!({"status": "active"}),
    );
    assert_eq!(listed["schedules"][0]["id"], id);
    let none = call(&server, "u2", "listCurrentUserSchedules", &json!({}));
    assert_eq!(none["schedules"], json!([]));
    let foreign = call(
        &server,
        "u2",
        "cancelCurrentUserSchedule",
        &json!({"scheduleId": id}),
    );
    let unknown = json!({"scheduleId": "sch-unknown"});
    let unknown = call(&server, "u2", "cancelCurrentUserSchedule", &unknown);
    assert_eq!(foreign, unknown);
    assert_eq!(foreign["ok"], false);
    let bad = json!({"flowId": "tick", "trigger": {"type": "cron", "expr": "0 9"}});
    let bad = call(&server, "u1", "createCurrentUserSchedule", &bad);
    assert_eq!(bad["code"], "invalid_args");
    clock_at(&server, "2031-03-03T09:30:05Z");
    assert_eq!(
        delivered(&server, "u1").pop().as_deref(),
        Some("tick for u1")
    );
    let second = call(
        &server,
        "u1",
        "createCurrentUserSchedule",
        &json!({"flowId": "tick", "trigger": {"type": "cron", "expr": "0 12 * * *"}}),
    );
    let cancel = json!({"scheduleId": second["id"]});
    let canceled = call(&server, "u1", "cancelCurrentUserSchedule", &cancel);
    assert_eq!(canceled["status"], "canceled");
}

/// Z-168 (half: a user without a session): such a user is addressed only if the schedule may begin one.
#[test]
fn user_without_a_session_is_addressed_only_if_that_is_allowed() {
    let server = desk();
    let scheduled = |time: &str, allowed: bool| {
        let definition = json!({"trigger": once(time), "target": for_user("new"),
            "allowSessionBootstrap": allowed});
        create(&server, definition)
    };
    let (refused, allowed) = (scheduled("09:00", false), scheduled("09:05", true));
    clock_at(&server, "2031-03-03T09:00:05Z");
    let run = &runs(&server, &refused)[0];
    assert_eq!(run["outcome"], "skipped", "{run}");
    assert_eq!(run["reason"], "bootstrap_disabled");
    assert!(delivered(&server, "new").is_empty());
    clock_at(&server, "2031-03-03T09:05:05Z");
    assert_eq!(runs(&server, &allowed)[0]["outcome"], "success");
    assert_eq!(delivered(&server, "new"), ["tick for new"]);
}

/// Z-246, Z-161 (half: If-Match and the body's version lock a schedule), Z-177 (half: the control plane manages users and segments)
#[test]
fn schedules_are_filtered_and_locked() {
    let server = desk();
    let cron = json!({"type": "cron", "expr": "0 9 * * *"});
    let one = create(&server, json!({"trigger": cron, "target": for_user("u1")}));
    let other = json!({"flowId": "paying", "trigger": cron, "target": for_user("u2")});
    let two = create(&server, other);
    let many = create(
        &server,
        json!({"trigger": cron, "target": campaign(json!({"type": "all"}))}),
    );
    let ids = |query: &str| {
        let found = list(&server, &format!("/schedules?{query}"), "schedules");
        found
            .into_iter()
            .map(|one| one["id"].clone())
            .collect::<Vec<_>>()
    };
    let id = |schedule: &Value| schedule["id"].clone();
    let configured = json!("cfg:desk:nightly");
    assert_eq!(ids("flowId=paying"), [id(&two)]);
    assert_eq!(ids("targetKind=segment"), [id(&many)]);
    assert_eq!(ids("userExternalId=u1"), [id(&one)]);
    assert_eq!(ids("campaignId=spring&status=active"), [id(&many)]);
    assert_eq!(ids("status=paused"), [Value::Null; 0]);
    assert_eq!(
        ids("agentId=desk&flowId=tick"),
        [id(&many), id(&one), configured]
    );
    assert_eq!(
        read(&server.get(&format!("{HOST}/schedules?status=odd"))).0,
        400
    );
    let shown = one["id"].as_str().expect("an id");
    for path in [
        "/schedules".to_owned(),
        format!("/schedules/{shown}"),
        format!("/schedules/{shown}/runs"),
    ] {
        let path = format!("{HOST}{path}");
        assert_eq!(read(&server.get(&path)).0, 401, "{path}");
        let guess = server.get_with(&path, &[("X-Admin-Token", "guess")]);
        assert_eq!(read(&guess).0, 401, "{path}");
    }
    let path = format!("{HOST}/schedules/{}", one["id"].as_str().expect("an id"));
    let change = |headers: &[(&str, &str)], method_path: &str| {
        read(&server.post(method_path, headers, "")).0
    };
    let pause = format!("{path}/pause");
    assert_eq!(change(&[BOSS, ("If-Match", "\"7\"")], &pause), 409);
    assert_eq!(change(&[BOSS, ("If-Match", "x")], &pause), 400);
    assert_eq!(change(&[BOSS, ("If-Match", "\"1\"")], &pause), 200);
    let shown = ok(&server.get_with(&path, &[BOSS]));
    assert_eq!(
        (&shown["status"], &shown["version"]),
        (&json!("paused"), &json!(2))
    );
    assert_eq!(shown["nextRunAt"], Value::Null);
    assert_eq!(
        shown["createdBy"],
        json!({"plane": "control", "actorId": "ana"})
    );
}

/// Z-157 (half: schedules of the agent's file follow it while the host runs)
#[test]
fn schedules_of_the_file_follow_it_while_the_host_runs() {
    let server = desk();
    let file = server.home().join("agents/desk/agent.ts");
    let status = || {
        let shown = ok(&server.get_with(&format!("{HOST}/schedules/cfg:desk:nightly"), &[BOSS]));
        (shown["status"].clone(), shown["cronExpr"].clone())
    };
    assert_eq!(status(), (json!("active"), json!("0 3 * * *")));
    std::fs::write(&file, AGENT.replace("0 3 * * *", "0 4 * * *")).expect("it is written");
    server.eventually("the new time", || status().1 == "0 4 * * *");
    let without = AGENT.replace("schedules: {", "// schedules: {").replace(
        "    target: { kind: 'user', userExternalId: 'night-owl' } } },",
        "",
    );
    std::fs::write(&file, without).expect("it is written");
    server.eventually("its end", || status().0 == "canceled");
}

#[test]
fn command_line_manages_schedules() {
    let server = desk();
    let run = |args: &[&str]| {
        let mut all = vec!["schedules"];
        all.extend_from_slice(args);
        all.push("--json");
        let output = server
            .client(&all)
            .env("TANDEM_ADMIN_TOKEN", "boss-token")
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.code(),
            serde_json::from_str::<Value>(&text).unwrap_or(Value::Null),
        )
    };
    let made = run(&[
        "create",
        "--agent",
        "desk",
        "--flow",
        "tick",
        "--user",
        "u1",
        "--at",
        "2031-03-03T09:00:00Z",
        "--bootstrap",
    ]);
    assert_eq!(made.0, Some(0));
    let id = made.1["id"].as_str().expect("an id").to_owned();
    assert_eq!(
        run(&["update", &id, "--flow", "paying", "--version", "9"]).0,
        Some(1)
    );
    let (code, changed) = run(&["update", &id, "--cron", "0 10 * * *", "--version", "1"]);
    assert_eq!(
        (code, &changed["cronExpr"]),
        (Some(0), &json!("0 10 * * *"))
    );
    assert_eq!(run(&["pause", &id]).1["status"], "paused");
    assert_eq!(run(&["resume", &id]).1["status"], "active");
    clock_at(&server, "2031-03-03T09:00:05Z");
    let (_, listed) = run(&["runs", &id]);
    assert_eq!(listed["runs"][0]["outcome"], "success");
    assert_eq!(
        run(&["list", "--user", "u1"]).1["schedules"][0]["id"],
        id.as_str()
    );
    assert_eq!(run(&["cancel", &id]).1["status"], "canceled");
    assert_eq!(run(&["show", &id]).1["status"], "canceled");
    assert_eq!(run(&["show", "sch-unknown"]).0, Some(1));
    let campaign = run(&[
        "create",
        "--agent",
        "desk",
        "--flow",
        "tick",
        "--tag",
        "vip",
        "--campaign",
        "spring",
        "--cron",
        "0 12 * * *",
    ]);
    assert_eq!(campaign.1["campaignId"], "spring");
    let list = || server.client(&["schedules", "list"]);
    let refused = list().output().expect("it runs");
    assert_eq!(refused.status.code(), Some(1), "nobody is known");
    let listed = list().env("TANDEM_ADMIN_TOKEN", "boss-token").output();
    let text = listed.expect("it runs");
    assert!(String::from_utf8_lossy(&text.stdout).contains("tag vip"));
}

/// Z-182 (half: the payload of events of a campaign and of its recipients), Z-201 (half: in the log of the agent)
#[test]
fn events_of_schedules_are_in_the_log_of_the_agent() {
    let server = desk();
    send(&server, "a", "hi");
    let schedule = create(
        &server,
        json!({"trigger": once("09:00"), "target": campaign(json!({"type": "all"})),
            "allowSessionBootstrap": true}),
    );
    clock_at(&server, "2031-03-03T09:00:05Z");
    settle(&server);
    let events = list(&server, "/agents/desk/events?after=-1", "events");
    let of_schedule: Vec<&Value> = events
        .iter()
        .filter(|event| event["payload"]["scheduleId"] == schedule["id"])
        .filter(|event| {
            event["type"]
                .as_str()
                .is_some_and(|name| name.starts_with("schedule:"))
        })
        .collect();
    let names: Vec<&str> = of_schedule
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "schedule:created",
            "schedule:triggered",
            "schedule:run_started",
            "schedule:campaign_resolved",
            "schedule:recipient_run_started",
            "schedule:recipient_run_completed",
            "schedule:run_completed"
        ]
    );
    let done = &of_schedule[5]["payload"];
    assert_eq!(done["recipientUserExternalId"], "a");
    assert_eq!(done["campaignId"], "spring");
    assert_eq!(
        (&done["source"], &done["targetKind"]),
        (&json!("scheduled"), &json!("segment"))
    );
    assert_eq!(done["scheduledFor"], "2031-03-03T09:00:00.000Z");
    assert_eq!(
        (&done["attempt"], &done["outcome"]),
        (&json!(1), &json!("success"))
    );
    assert!(done["requestId"].is_string() && done["sessionId"].is_string());
    assert_eq!(of_schedule[3]["payload"]["recipients"], 1);
    assert_eq!(of_schedule[0]["actor"]["id"], "ana");
    let sent = events.iter().find(|event| {
        event["type"] == "response:sent" && event["payload"]["scheduleId"] == schedule["id"]
    });
    let sent = &sent.expect("a response of the schedule")["payload"];
    assert_eq!(
        (&sent["runAttempt"], &sent["segmentId"]),
        (&json!(1), &json!("all"))
    );
}
