//! Whose work an escalation is, over the API and in the console: claims, releases, assignments, lists.

use crate::chat_agents::ChatAgents;
use crate::desk::escalated;
use crate::inbox::{page, sign_in_as};
use crate::test_server::{HostOptions, Reply, Stream, TestServer};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId};

const BASE: &str = "/v1/host/tandem";
const ANA: &str = "ana-token";
const BEN: &str = "ben-token";
/// May look and not decide.
const EVA: &str = "eva-token";

async fn server() -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::conversations()),
        ..HostOptions::default()
    })
    .await
}

/// A user whose request waits for a person: the session and the escalation.
async fn asking(server: &TestServer, from: &str, text: &str) -> (String, String) {
    let path = format!("{BASE}/agents/staffed/inbound?wait=true");
    let message = json!({"messageId": format!("{from}-1"), "from": from, "body": text});
    let sent = server.post(&path, message).await.ok(200);
    let session = sent["sessionId"].as_str().expect("a session").to_owned();
    let listed = list(server, &format!("sessionId={session}")).await;
    let [escalation] = listed.as_slice() else {
        panic!("one escalation: {listed:?}");
    };
    (session, escalation.clone())
}

async fn call(server: &TestServer, method: &str, path: &str, token: &str, body: Value) -> Reply {
    let path = format!("{BASE}{path}");
    let headers = [("x-admin-token", token)];
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    server
        .call_as(&server.key, method, &path, &headers, body)
        .await
}

async fn act(server: &TestServer, escalation: &str, action: &str, token: &str) -> Reply {
    let body = match action {
        "assign" => json!({"actorId": "ben"}),
        _ => Value::Null,
    };
    let path = format!("/escalations/{escalation}/{action}");
    call(server, "POST", &path, token, body).await
}

/// Ids of the open escalations that a query lists, newest first.
async fn list(server: &TestServer, query: &str) -> Vec<String> {
    let path = format!("/escalations?status=open&{query}");
    let listed = call(server, "GET", &path, ANA, Value::Null).await.ok(200);
    let listed = listed["escalations"].as_array().expect("a list").iter();
    let ids = listed.map(|found| found["id"].as_str().expect("an id").to_owned());
    ids.collect()
}

async fn events(server: &TestServer, session: &str, name: &str) -> Vec<Value> {
    let path = format!("{BASE}/sessions/{session}/events?after=-1");
    let page = server.get(&path).await.ok(200);
    let events = page["events"].as_array().expect("events").iter();
    events
        .filter(|event| event["type"] == name)
        .cloned()
        .collect()
}

/// Z-238 (half: the routes: one winner, who has it, release, assignment)
#[tokio::test]
async fn escalation_is_claimed_once_released_and_assigned() {
    let server = server().await;
    let (session, escalation) = asking(&server, "ada", "refund").await;
    let claimed = act(&server, &escalation, "claim", ANA).await.ok(200);
    assert_eq!(claimed["assignee"], "ana");
    assert_eq!(claimed["queue"], "front");
    let since = claimed["claimedAt"].clone();
    assert!(since.is_string(), "{claimed}");
    server.advance(60).await;
    let again = act(&server, &escalation, "claim", ANA).await.ok(200);
    assert_eq!(again["claimedAt"], since, "it is hers already");
    let late = act(&server, &escalation, "claim", BEN).await;
    let details = late.refused(409, "escalation_claimed");
    assert_eq!(details, json!({"assignee": "ana", "claimedAt": since}));
    let released = act(&server, &escalation, "release", BEN).await.ok(200);
    assert!(released.get("assignee").is_none() && released.get("claimedAt").is_none());
    act(&server, &escalation, "release", ANA).await.ok(200);
    let assigned = act(&server, &escalation, "assign", ANA).await.ok(200);
    assert_eq!(assigned["assignee"], "ben");
    assert!(assigned.get("claimedAt").is_none(), "{assigned}");
    let not_hers = act(&server, &escalation, "claim", ANA).await;
    let details = not_hers.refused(409, "escalation_claimed");
    assert_eq!(details, json!({"assignee": "ben", "claimedAt": null}));
    act(&server, &escalation, "claim", BEN).await.ok(200);
    for (name, by) in [("claimed", "ana"), ("released", "ben"), ("assigned", "ana")] {
        let told = events(&server, &session, &format!("hitl.escalation.{name}")).await;
        assert_eq!(told[0]["actor"]["id"], by, "{told:?}");
        assert_eq!(told[0]["payload"]["escalationId"], *escalation);
    }
    // Deciding needs no claim, and a closed escalation is nobody's work.
    let path = format!("/escalations/{escalation}/resolve");
    let decided = call(&server, "POST", &path, ANA, json!({"approved": true})).await;
    decided.ok(200);
    for action in ["claim", "release", "assign"] {
        let closed = act(&server, &escalation, action, BEN).await;
        closed.refused(409, "interrupt_already_resolved");
    }
}

/// Claims at the same time: one is accepted.
#[tokio::test]
async fn one_of_several_claims_at_the_same_time_wins() {
    let server = server().await;
    let (session, escalation) = asking(&server, "ada", "refund").await;
    let claims = (0..10).map(|n| act(&server, &escalation, "claim", [ANA, BEN][n % 2]));
    let replies = futures_util::future::join_all(claims).await;
    let won = |token: usize| {
        let of = replies.iter().skip(token).step_by(2);
        of.map(|reply| reply.status.as_u16()).collect::<Vec<_>>()
    };
    let (ana, ben) = (won(0), won(1));
    let expected = match ana[0] {
        200 => (vec![200; 5], vec![409; 5]),
        _ => (vec![409; 5], vec![200; 5]),
    };
    assert_eq!((ana, ben), expected);
    let told = events(&server, &session, "hitl.escalation.claimed").await;
    assert_eq!(told.len(), 1, "{told:?}");
}

/// Z-238 (half: authorized and audited), Z-145 (half: desk work)
#[tokio::test]
async fn desk_work_needs_the_right_to_decide_and_is_recorded() {
    let server = server().await;
    let (session, escalation) = asking(&server, "ada", "refund").await;
    for action in ["claim", "release", "assign"] {
        act(&server, &escalation, action, EVA)
            .await
            .refused(403, "forbidden");
        act(&server, &escalation, action, "guess")
            .await
            .refused(401, "unauthenticated");
    }
    let denied = events(&server, &session, "admin.authz.denied").await;
    assert_eq!(denied.len(), 6);
    assert!(denied.iter().all(|event| {
        event["payload"]["action"] == "hitl.escalation.resolve"
            && event["payload"]["escalationId"] == *escalation
    }));
    for name in ["claimed", "released", "assigned"] {
        let told = events(&server, &session, &format!("hitl.escalation.{name}")).await;
        assert!(told.is_empty(), "{told:?}");
    }
    act(&server, &escalation, "claim", ANA).await.ok(200);
    let granted = events(&server, &session, "admin.authz.granted").await;
    assert_eq!(granted.last().expect("granted")["actor"]["id"], "ana");
    // A key that may only read, and a key of another tenant.
    let path = format!("{BASE}/escalations/{escalation}/claim");
    let token = [("x-admin-token", ANA)];
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let reply = server.call_as(&reader, "POST", &path, &token, "").await;
    reply.refused(403, "forbidden");
    let foreign = server.new_key("tenant2", Scope::all()).await;
    for action in ["claim", "release", "assign"] {
        let path = format!("{BASE}/escalations/{escalation}/{action}");
        let body = json!({"actorId": "x"}).to_string();
        let reply = server.call_as(&foreign, "POST", &path, &token, body).await;
        reply.refused(404, "not_found");
    }
}

#[tokio::test]
async fn assignment_names_somebody() {
    let server = server().await;
    let (_, escalation) = asking(&server, "ada", "refund").await;
    let path = format!("/escalations/{escalation}/assign");
    for body in [
        json!({}),
        json!({"actorId": " "}),
        json!({"actorId": "x".repeat(201)}),
        json!({"actorId": 1}),
        json!({"actorId": "ben", "more": 1}),
    ] {
        let refused = call(&server, "POST", &path, ANA, body.clone()).await;
        assert_eq!(refused.status.as_u16(), 400, "{body}: {refused:?}");
    }
    let unknown = act(&server, "esc-none", "claim", ANA).await;
    unknown.refused(404, "not_found");
}

/// Z-238 (half: lists by queue, assignee and unclaimed)
#[tokio::test]
async fn lists_are_filtered_by_queue_assignee_and_unclaimed() {
    let server = server().await;
    let (_, mine) = asking(&server, "ada", "refund").await;
    let (_, given) = asking(&server, "ben", "human").await;
    let (_, free) = asking(&server, "eva", "refund").await;
    act(&server, &mine, "claim", ANA).await.ok(200);
    act(&server, &given, "assign", ANA).await.ok(200);
    for (query, expected) in [
        ("", vec![&free, &given, &mine]),
        ("queue=front", vec![&free, &given, &mine]),
        ("queue=back", vec![]),
        ("assignee=ana", vec![&mine]),
        ("assignee=ben", vec![&given]),
        ("assignee=ben&unclaimed=false", vec![&given]),
        ("unclaimed=true", vec![&free]),
        ("unclaimed=true&queue=front", vec![&free]),
        ("assignee=ana&queue=back", vec![]),
    ] {
        let listed = list(&server, query).await;
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    for query in ["unclaimed=yes", "unclaimed=true&assignee=ana"] {
        let path = format!("/escalations?{query}");
        let refused = call(&server, "GET", &path, ANA, Value::Null).await;
        refused.refused(400, "validation_error");
    }
    act(&server, &mine, "release", ANA).await.ok(200);
    assert_eq!(list(&server, "unclaimed=true").await, [free, mine]);
}

/// Z-238 (half: the claimed escalation stays open in its list, in the inbox and for its flow)
#[tokio::test]
async fn claimed_escalation_has_no_deadline_until_it_is_released() {
    let server = server().await;
    let (session, escalation) = asking(&server, "ada", "refund").await;
    let deadlines = async || {
        let path = format!("/escalations/{escalation}");
        let shown = call(&server, "GET", &path, ANA, Value::Null).await.ok(200);
        let view = server
            .get(&format!("{BASE}/sessions/{session}"))
            .await
            .ok(200);
        let inbox = server
            .get(&format!("{BASE}/interrupts?sessionId={session}"))
            .await
            .ok(200);
        let question = inbox["interrupts"][0].clone();
        assert_eq!(question["kind"], "approval", "{inbox}");
        [
            shown["deadline"].clone(),
            view["flow"]["deadline"].clone(),
            question["deadline"].clone(),
        ]
    };
    let before = deadlines().await;
    assert!(before[0].is_string() && before[1] == before[0] && before[2] == before[0]);
    let claimed = act(&server, &escalation, "claim", ANA).await.ok(200);
    assert_eq!(claimed["timeoutStopped"], true);
    assert_eq!(claimed["timeLeftSeconds"], 86_400);
    assert_eq!(deadlines().await, [Value::Null, Value::Null, Value::Null]);
    server.advance(200_000).await;
    let released = act(&server, &escalation, "release", ANA).await.ok(200);
    assert_eq!(released["status"], "open");
    let after = deadlines().await;
    assert!(after[0].is_string() && after[1] == after[0] && after[2] == after[0]);
    assert_ne!(after[0], before[0]);
    server.advance(86_401).await;
    assert!(list(&server, "").await.is_empty(), "its time is over");
}

fn field<'a>(html: &'a str, name: &str) -> &'a str {
    let (_, rest) = html
        .split_once(&format!("name=\"{name}\" value=\""))
        .expect("a field");
    rest.split('"').next().expect("a value")
}

async fn post(server: &TestServer, cookie: &str, escalation: &str, form: &[(&str, &str)]) -> Reply {
    let escalation = escalation.replace(':', "%3A");
    let path = format!("/console/escalations/{escalation}");
    let list = page(server, cookie, "/console/inbox").await.text;
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.append_pair("csrf", field(&list, "csrf"))
        .extend_pairs(form);
    let headers = [("cookie", cookie), ("host", "t")];
    server
        .call_as("", "POST", &path, &headers, body.finish())
        .await
}

/// Rules with tokens: the console asks for one with the action.
#[tokio::test]
async fn console_claims_with_the_token_of_an_admin() {
    let server = server().await;
    let (session, escalation) = asking(&server, "ada", "refund").await;
    let cookie = sign_in_as(&server, &server.key).await;
    let path = format!("/console/conversations/{session}");
    let shown = page(&server, &cookie, &path).await.text;
    for part in [
        "Nobody has it",
        "Queue front",
        "name=\"adminToken\"",
        "value=\"claim\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let denied = post(&server, &cookie, &escalation, &[("action", "claim")]).await;
    assert_eq!(denied.status.as_u16(), 401, "{denied:?}");
    let token = ("adminToken", ANA);
    let done = post(&server, &cookie, &escalation, &[("action", "claim"), token]).await;
    assert_eq!(
        (done.status.as_u16(), done.header("location")),
        (303, &*path)
    );
    let shown = page(&server, &cookie, &path).await.text;
    for part in [
        "<strong>ana</strong> has it",
        "Time stopped",
        "value=\"release\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("value=\"claim\""), "{shown}");
    let token = ("adminToken", BEN);
    let late = post(&server, &cookie, &escalation, &[("action", "claim"), token]).await;
    assert_eq!(late.status.as_u16(), 409, "{late:?}");
    assert!(late.text.contains("the work of ana"), "{}", late.text);
    let form = [
        ("action", "assign"),
        ("actorId", "ben"),
        ("from", "list"),
        token,
    ];
    let done = post(&server, &cookie, &escalation, &form).await;
    assert_eq!(done.header("location"), "/console/escalations");
    let list = page(&server, &cookie, "/console/escalations?assignee=ben")
        .await
        .text;
    assert!(list.contains("Assigned to <strong>ben</strong>"), "{list}");
    for query in ["unclaimed=true", "queue=back", "assignee=ana"] {
        let path = format!("/console/escalations?{query}");
        let list = page(&server, &cookie, &path).await.text;
        assert!(
            list.contains("No open escalations match"),
            "{query}: {list}"
        );
    }
    let unknown = post(&server, &cookie, &escalation, &[("action", "steal")]).await;
    assert_eq!(unknown.status.as_u16(), 404);
    let stranger = server
        .call_as("", "GET", "/console/escalations", &[], "")
        .await;
    assert_eq!(stranger.header("location"), "/console/login");
    let foreign = server.new_key("tenant2", Scope::all()).await;
    let foreign = sign_in_as(&server, &foreign).await;
    let list = page(&server, &foreign, "/console/escalations").await.text;
    assert!(list.contains("No open escalations."), "{list}");
}

/// Rules by key: what is offered follows from the key of the reader.
#[tokio::test]
async fn console_offers_only_what_the_reader_may_do() {
    let server = server().await;
    let address = server.listen().await;
    let (_client, session, question) = escalated(&server, address, "open").await;
    let card = format!("/console/inbox/{}", question.replace(':', "%3A"));
    let conversation = format!("/console/conversations/{session}");
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let reader = sign_in_as(&server, &reader).await;
    for path in [&card, &conversation, "/console/escalations"] {
        let shown = page(&server, &reader, path).await.text;
        assert!(shown.contains("Nobody has it"), "{path}: {shown}");
        assert!(
            !shown.contains("value=\"claim\"") && !shown.contains("actorId"),
            "{path}"
        );
    }
    let scopes = [Scope::RunsRead, Scope::ApprovalsRespond];
    let eve = NewKey {
        principal: Some(Principal::new("eve")),
        ..NewKey::new("eve", TenantId::new("default"), scopes)
    };
    let eve = server.mint(eve).await;
    let eve = sign_in_as(&server, &eve).await;
    for path in [&card, &conversation, "/console/escalations"] {
        let shown = page(&server, &eve, path).await.text;
        assert!(shown.contains("value=\"claim\""), "{path}: {shown}");
    }
    let mut live = Stream::open(address, "/console/escalations/live", &[("cookie", &eve)]).await;
    let first = live.next().await.expect("the rows");
    assert!(
        first.data["html"]
            .as_str()
            .is_some_and(|html| html.contains("Nobody has it"))
    );
    let shown = page(&server, &eve, &card).await.text;
    let (_, form) = shown
        .split_once("action=\"/console/escalations/")
        .expect("a form");
    let escalation = form.split('"').next().expect("an id").replace("%3A", ":");
    let form = [
        ("action", "claim"),
        ("from", "inbox"),
        ("question", &*question),
    ];
    let done = post(&server, &eve, &escalation, &form).await;
    assert_eq!(
        (done.status.as_u16(), done.header("location")),
        (303, &*card)
    );
    for path in [&card, &conversation, "/console/escalations"] {
        let shown = page(&server, &eve, path).await.text;
        assert!(
            shown.contains("<strong>eve</strong> has it"),
            "{path}: {shown}"
        );
        assert!(!shown.contains("value=\"claim\""), "{path}: {shown}");
    }
    loop {
        let frame = live.next().await.expect("rows");
        if frame.data["html"]
            .as_str()
            .is_some_and(|html| html.contains("eve"))
        {
            break;
        }
    }
    // An agent whose rules know nobody offers the attempt, which fails.
    let (_client, session, _) = escalated(&server, address, "strict").await;
    let path = format!("/console/conversations/{session}");
    let shown = page(&server, &eve, &path).await.text;
    assert!(shown.contains("name=\"adminToken\""), "{shown}");
}
