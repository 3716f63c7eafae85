//! Schedules in the console: the list, one with its occurrences, recipients, and the buttons that change one.

use crate::chat_agents::{ChatAgents, HOSTILE};
use crate::inbox::{page, sign_in_as};
use crate::test_server::{HostOptions, Reply, Stream, TestServer};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId, WorkspaceId};

const BASE: &str = "/v1/host/tandem";

async fn server() -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::conversations()),
        ..HostOptions::default()
    })
    .await
}

/// A key with the role that manages schedules.
async fn planner(server: &TestServer, scopes: &[Scope]) -> String {
    let key = NewKey {
        principal: Some(Principal::new("eve")),
        roles: vec!["planner".to_owned()],
        ..NewKey::new("eve", TenantId::new("default"), scopes.to_vec())
    };
    server.mint(key).await
}

/// A schedule of the agent `planned` for one user, or for all.
async fn create(server: &TestServer, target: Value) -> String {
    let body = json!({"agentId": "planned", "flowId": "book", "trigger": {"type": "cron", "expr": "0 * * * *"},
        "onMissed": {"policy": "catch_up", "maxRuns": 1}, "allowSessionBootstrap": true, "target": target});
    let key = planner(server, Scope::all()).await;
    let path = format!("{BASE}/schedules");
    let made = server
        .call_as(&key, "POST", &path, &[], body.to_string())
        .await;
    let made = made.ok(201);
    made["id"].as_str().expect("an id").to_owned()
}

fn user(id: &str) -> Value {
    json!({"kind": "user", "userExternalId": id})
}

async fn shown(server: &TestServer, cookie: &str, path: &str) -> String {
    let shown = page(server, cookie, path).await;
    assert_eq!(shown.status.as_u16(), 200, "{shown:?}");
    shown.text
}

fn path_of(schedule: &str) -> String {
    format!("/console/schedules/{}", schedule.replace(':', "%3A"))
}

fn field<'a>(html: &'a str, name: &str) -> &'a str {
    let (_, rest) = html
        .split_once(&format!("name=\"{name}\" value=\""))
        .expect("a field");
    rest.split('"').next().expect("a value")
}

async fn post(server: &TestServer, cookie: &str, path: &str, form: &[(&str, &str)]) -> Reply {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let headers = [("cookie", cookie), ("host", "t")];
    server.call_as("", "POST", path, &headers, body).await
}

async fn status(server: &TestServer, schedule: &str) -> Value {
    let path = format!("{BASE}/schedules/{schedule}");
    let key = planner(server, Scope::all()).await;
    let headers = [("x-admin-token", "ana-token")];
    let read = server.call_as(&key, "GET", &path, &headers, String::new());
    read.await.ok(200)["status"].clone()
}

#[tokio::test]
async fn schedules_are_listed_and_one_is_shown_with_what_comes_next() {
    let server = server().await;
    let ada = create(&server, user(HOSTILE)).await;
    let all = json!({"kind": "segment", "campaignId": "spring", "segment": {"type": "all"}});
    let all = create(&server, all).await;
    let key = planner(&server, Scope::all()).await;
    let cookie = sign_in_as(&server, &key).await;
    let list = shown(&server, &cookie, "/console/schedules").await;
    for part in [
        &*ada,
        &*all,
        "At minute 0 of every hour",
        "<code>0 * * * *</code>",
        "segment all",
        "campaign spring",
        "data-live-rows",
        "aria-current=\"page\">Schedules",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert!(!list.contains("<img"), "{list}");
    for query in ["status=paused", "agent=closed"] {
        let path = format!("/console/schedules?{query}");
        let list = shown(&server, &cookie, &path).await;
        assert!(list.contains("No schedules match this filter."), "{query}");
    }
    let unknown = page(&server, &cookie, "/console/schedules?status=odd").await;
    assert_eq!(unknown.status.as_u16(), 400);
    let one = shown(&server, &cookie, &path_of(&ada)).await;
    let occurrences = one.split("<ol class=\"occurrences\">").nth(1);
    let occurrences = occurrences.and_then(|rest| rest.split("</ol>").next());
    let occurrences = occurrences.expect("what comes next");
    assert_eq!(occurrences.matches(":00</time>").count(), 5, "{one}");
    for part in [
        "It has not taken place yet.",
        "action-pause",
        "action-cancel",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
}

/// The runs of both kinds; the recipients of a campaign, page by page.
#[tokio::test]
async fn runs_and_recipients_are_shown_with_their_outcomes() {
    let server = server().await;
    for name in ["ada", "ben"] {
        let path = format!("{BASE}/agents/planned/inbound?wait=true");
        let message = json!({"messageId": name, "from": name, "body": "hi"});
        server.post(&path, message).await.ok(200);
    }
    let alone = create(&server, user("ada")).await;
    let all = create(
        &server,
        json!({"kind": "segment", "segment": {"type": "all"}}),
    )
    .await;
    let cookie = sign_in_as(&server, &server.key).await;
    let address = server.listen().await;
    let live = format!("{}/live", path_of(&alone));
    let mut live = Stream::open(address, &live, &[("cookie", &cookie)]).await;
    let first = live.next().await.expect("the rows").data;
    assert!(first.to_string().contains("not taken place"), "{first}");
    server.advance(3_600).await;
    loop {
        let frame = live.next().await.expect("rows");
        let html = frame.data["html"].as_str().unwrap_or_default();
        if html.contains("/console/conversations/") {
            break;
        }
    }
    let one = shown(&server, &cookie, &path_of(&alone)).await;
    assert!(one.contains("/console/conversations/"), "{one}");
    let campaign = shown(&server, &cookie, &path_of(&all)).await;
    assert!(campaign.contains("2 recipients"), "{campaign}");
    let (_, run) = campaign
        .split_once("/console/schedule-runs/")
        .expect("a link to the run");
    let run = format!(
        "/console/schedule-runs/{}",
        run.split('"').next().expect("an id")
    );
    let recipients = shown(&server, &cookie, &run).await;
    for part in ["ada", "ben", "2 recipients: ", "/console/conversations/"] {
        assert!(recipients.contains(part), "{part}: {recipients}");
    }
    let list = shown(&server, &cookie, "/console/schedules").await;
    assert!(list.contains("tone-good\">success"), "{list}");
    let odd = page(&server, &cookie, &format!("{run}?cursor=odd")).await;
    assert_eq!(odd.status.as_u16(), 400);
    // Somebody of another tenant or workspace sees nothing of it.
    let foreign = server.new_key("tenant2", Scope::all()).await;
    let bound = NewKey {
        workspace: Some(WorkspaceId::new("elsewhere")),
        ..NewKey::new("bound", TenantId::new("default"), Scope::all().to_vec())
    };
    let bound = server.mint(bound).await;
    for key in [foreign, bound] {
        let other = sign_in_as(&server, &key).await;
        for path in [&run, &path_of(&all), &format!("{}/live", path_of(&all))] {
            let refused = page(&server, &other, path).await;
            assert_eq!(refused.status.as_u16(), 404, "{path}");
        }
        let list = shown(&server, &other, "/console/schedules").await;
        assert!(list.contains("No schedules yet."), "{list}");
    }
    let stranger = server
        .call_as("", "GET", "/console/schedules", &[], "")
        .await;
    assert_eq!(stranger.header("location"), "/console/login");
}

#[tokio::test]
async fn buttons_pause_resume_and_cancel() {
    let server = server().await;
    let schedule = create(&server, user("ada")).await;
    let key = planner(&server, Scope::all()).await;
    let cookie = sign_in_as(&server, &key).await;
    let path = path_of(&schedule);
    for (action, expected) in [
        ("pause", "paused"),
        ("resume", "active"),
        ("cancel", "canceled"),
    ] {
        let html = shown(&server, &cookie, &path).await;
        let csrf = ("csrf", field(&html, "csrf"));
        let version = ("version", field(&html, "version"));
        let action = format!("{path}/{action}");
        let forged = post(&server, &cookie, &action, &[version]).await;
        assert_eq!(forged.status.as_u16(), 403, "no form token");
        let done = post(&server, &cookie, &action, &[csrf, version]).await;
        assert_eq!(
            (done.status.as_u16(), done.header("location")),
            (303, &*path)
        );
        assert_eq!(status(&server, &schedule).await, expected);
        let stale = post(&server, &cookie, &action, &[csrf, version]).await;
        assert_eq!(stale.status.as_u16(), 409, "{stale:?}");
    }
    let html = shown(&server, &cookie, &path).await;
    assert!(!html.contains("action-pause") && !html.contains("action-cancel"));
    let csrf = ("csrf", field(&html, "csrf"));
    let odd = post(&server, &cookie, &format!("{path}/steal"), &[csrf]).await;
    assert_eq!(odd.status.as_u16(), 404);
    let log = server.get(&format!("{BASE}/agents/planned/events")).await;
    let log = log.ok(200).to_string();
    for part in ["admin.authz.granted", "schedule:canceled", "eve"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let audit = server.get(&format!("{BASE}/audit/export")).await;
    assert!(audit.text.contains("admin.authz.granted"), "{}", audit.text);
}

/// What is offered follows from the scopes of the key and the rules of the agent, and so does what is accepted.
#[tokio::test]
async fn only_those_who_may_change_a_schedule_are_offered_to() {
    let server = server().await;
    let schedule = create(&server, user("ada")).await;
    let path = path_of(&schedule);
    let reading: &[Scope] = &[Scope::RunsRead];
    let changing: &[Scope] = &[Scope::RunsRead, Scope::RunsCreate];
    let ending: &[Scope] = &[Scope::RunsRead, Scope::RunsCancel];
    for (scopes, offered) in [
        (reading, [false, false]),
        (changing, [true, false]),
        (ending, [false, true]),
    ] {
        let cookie = sign_in_as(&server, &planner(&server, scopes).await).await;
        let html = shown(&server, &cookie, &path).await;
        let buttons = ["action-pause", "action-cancel"].map(|id| html.contains(id));
        assert_eq!(buttons, offered, "{scopes:?}: {html}");
        let csrf = ("csrf", field(&html, "csrf"));
        for (verb, is_offered) in ["pause", "cancel"].into_iter().zip(offered) {
            if !is_offered {
                let form = [csrf, ("version", "1")];
                let refused = post(&server, &cookie, &format!("{path}/{verb}"), &form).await;
                assert_eq!(refused.status.as_u16(), 403, "{verb} with {scopes:?}");
            }
        }
    }
    assert_eq!(status(&server, &schedule).await, "active");
    // A key without the role is offered nothing, whatever its scopes.
    let other = sign_in_as(&server, &server.key).await;
    let html = shown(&server, &other, &path).await;
    assert!(!html.contains("action-pause") && !html.contains("action-cancel"));
    let form = [("csrf", field(&html, "csrf")), ("version", "1")];
    let refused = post(&server, &other, &format!("{path}/pause"), &form).await;
    assert_eq!(refused.status.as_u16(), 403, "{refused:?}");
    let blind = server.new_key("default", &[Scope::RunsCreate]).await;
    let blind = sign_in_as(&server, &blind).await;
    for path in ["/console/schedules", &*path] {
        let refused = page(&server, &blind, path).await;
        assert_eq!(refused.status.as_u16(), 403, "{path}");
    }
}

/// Rules with tokens: the page asks for one with the action.
#[tokio::test]
async fn schedule_is_paused_with_the_token_of_an_admin() {
    let server = server().await;
    let body = json!({"agentId": "staffed", "flowId": "book", "target": user("ada"),
        "trigger": {"type": "cron", "expr": "0 9 * * *"}});
    let headers = [("x-admin-token", "ana-token")];
    let path = format!("{BASE}/schedules");
    let made = server
        .call_as(&server.key, "POST", &path, &headers, body.to_string())
        .await
        .ok(201);
    let schedule = made["id"].as_str().expect("an id");
    let cookie = sign_in_as(&server, &server.key).await;
    let path = path_of(schedule);
    let html = shown(&server, &cookie, &path).await;
    assert!(html.contains("id=\"pause-token\""), "{html}");
    let form = [
        ("csrf", field(&html, "csrf")),
        ("version", field(&html, "version")),
    ];
    let pause = format!("{path}/pause");
    for (token, expected) in [("guess", 401), ("eva-token", 403), ("ana-token", 303)] {
        let form = [form[0], form[1], ("adminToken", token)];
        let reply = post(&server, &cookie, &pause, &form).await;
        assert_eq!(reply.status.as_u16(), expected, "{token}: {reply:?}");
    }
    assert_eq!(status(&server, schedule).await, "paused");
}
