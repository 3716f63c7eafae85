//! Who may decide, through every entry point: by node, by id and by link; groups, delegations,
//! denials, escalated interrupts, and external events that arrive before their wait.

use crate::test_server::{Reply, TestServer, hour};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId};

const GROUPS: &str = "/v1/host/tandem/groups";
const DELEGATIONS: &str = "/v1/host/tandem/delegations";

pub(crate) fn gate(config: Value) -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": config})
}

/// A key of a person.
pub(crate) async fn person(server: &TestServer, name: &str, roles: &[&str]) -> String {
    let scopes = [Scope::ApprovalsRespond, Scope::RunsRead, Scope::RunsCreate];
    let new = NewKey {
        principal: Some(Principal::new(name)),
        roles: roles.iter().map(ToString::to_string).collect(),
        ..NewKey::new(name, TenantId::new("default"), scopes)
    };
    server.mint(new).await
}

pub(crate) async fn send(
    server: &TestServer,
    key: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Reply {
    server
        .call_as(key, method, path, &[], body.to_string())
        .await
}

pub(crate) fn accept() -> Value {
    json!({"resumeValue": {"action": "accept"}})
}

pub(crate) async fn by_node(server: &TestServer, key: &str, run: &str, body: Value) -> Reply {
    let path = format!("/v1/runs/{run}/interrupts/gate");
    send(server, key, "POST", &path, body).await
}

async fn item(server: &TestServer, run: &str) -> Value {
    let path = format!("/v1/host/tandem/interrupts?status=any&runId={run}");
    server.get(&path).await.ok(200)["interrupts"][0].clone()
}

async fn payloads(server: &TestServer, run: &str, kind: &str) -> Vec<Value> {
    let log = server.log(run).await;
    let events = log["events"].as_array().unwrap().iter();
    events
        .filter(|event| event["type"] == kind)
        .map(|event| event["payload"].clone())
        .collect()
}

#[tokio::test]
async fn only_group_members_decide_through_every_endpoint() {
    let server = TestServer::new().await;
    let (ana, eve) = (
        person(&server, "ana", &[]).await,
        person(&server, "eve", &[]).await,
    );
    server
        .put(
            &format!("{GROUPS}/desk"),
            json!({"members": ["group:inner"]}),
        )
        .await
        .ok(201);
    server
        .put(&format!("{GROUPS}/inner"), json!({"members": ["ana"]}))
        .await
        .ok(201);
    let asks = gate(json!({"approverGroupRefs": ["desk"], "tandem": {"priority": "high"}}));
    let run = server.start("asks", &[asks]).await;
    let question = item(&server, &run).await;
    assert_eq!(question["approverGroups"], json!(["desk"]));
    assert_eq!(question["priority"], 8);

    let denied = by_node(&server, &eve, &run, accept()).await;
    let details = denied.refused(403, "forbidden");
    assert_eq!(
        (&details["reason"], &details["principal"]),
        (&json!("not-eligible"), &json!("eve"))
    );
    let id = question["interruptId"].as_str().unwrap();
    let path = format!("/v1/host/tandem/interrupts/{id}:resolve");
    send(&server, &eve, "POST", &path, accept())
        .await
        .refused(403, "forbidden");
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    let link = snapshot["interrupt"]["callbackUrl"].as_str().unwrap();
    let details = send(&server, "", "POST", link, accept())
        .await
        .refused(403, "auth_elevation_required");
    assert_eq!(details["reason"], "link-too-weak");
    assert_eq!(snapshot["status"], "waiting-approval");
    let denials = payloads(&server, &run, "tandem.decision.denied").await;
    let who: Vec<&Value> = denials.iter().map(|d| &d["principal"]).collect();
    assert_eq!(who, ["eve", "eve", "link"]);

    send(&server, &ana, "POST", &path, accept()).await.ok(200);
    let received = &payloads(&server, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "ana");
    assert_eq!(received["eligibleThrough"], json!(["desk"]));
    by_node(&server, &eve, &run, accept())
        .await
        .refused(409, "interrupt_already_resolved");
}

#[tokio::test]
async fn decided_by_in_body_never_replaces_the_principal() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana", &[]).await;
    let sent = json!({"resumeValue": {"action": "accept", "decidedBy": "the board"}});
    let run = server.start("open", &[gate(json!({}))]).await;
    by_node(&server, &ana, &run, sent.clone()).await.ok(200);
    let log = server.log(&run).await.to_string();
    assert!(!log.contains("the board"), "{log}");
    let received = &payloads(&server, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "ana");
    let resolved = &payloads(&server, &run, "interrupt.resolved").await[0];
    assert_eq!(resolved["resolvedBy"], "ana");

    // Several people may share a key that was made for nobody by name.
    let shared = server.new_key("default", Scope::all()).await;
    let run = server.start("open", &[gate(json!({}))]).await;
    by_node(&server, &shared, &run, sent.clone()).await.ok(200);
    let received = &payloads(&server, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "the board");
    let resolved = &payloads(&server, &run, "interrupt.resolved").await[0];
    assert_eq!(received["claimedBy"], resolved["resolvedBy"]);

    let bound = gate(json!({"approversList": ["ana"]}));
    let run = server.start("bound", &[bound]).await;
    by_node(&server, &ana, &run, sent).await.ok(200);
    let received = &payloads(&server, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "ana");

    let run = server.start("open", &[gate(json!({}))]).await;
    let long = json!({"resumeValue": {"action": "accept", "decidedBy": "x".repeat(300)}});
    let refused = by_node(&server, &ana, &run, long).await;
    refused.refused(400, "validation_error");
}

#[tokio::test]
async fn group_membership_is_read_at_decision_time() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana", &["clerk"]).await;
    let run = server
        .start("asks", &[gate(json!({"approverGroupRefs": ["desk"]}))])
        .await;
    by_node(&server, &ana, &run, accept())
        .await
        .refused(403, "forbidden");
    let path = format!("{GROUPS}/desk");
    let members = json!({"members": ["role:clerk"]});
    server.put(&path, members).await.ok(201);
    assert_eq!(
        server.get(GROUPS).await.ok(200)["groups"][0]["members"],
        json!(["role:clerk"])
    );
    by_node(&server, &ana, &run, accept()).await.ok(200);
    server.put(&path, json!({"members": []})).await.ok(200);
    assert_eq!(server.get(&path).await.ok(200)["members"], json!([]));
    let gone = server.call_as(&server.key, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status.as_u16(), 204);
    server.get(&path).await.refused(404, "not_found");
    let received = &payloads(&server, &run, "approval.received").await[0];
    assert_eq!(received["roles"], json!(["clerk"]), "the record stays");
}

#[tokio::test]
async fn groups_are_validated_and_tenant_scoped() {
    let server = TestServer::new().await;
    for (name, body) in [
        ("desk", json!({"members": ["role:"]})),
        ("desk", json!({"members": ["group:desk"]})),
        ("desk", json!({"members": [1]})),
        ("desk", json!({})),
        ("de%20sk", json!({"members": []})),
    ] {
        let reply = server.put(&format!("{GROUPS}/{name}"), body).await;
        reply.refused(400, "validation_error");
    }
    let path = format!("{GROUPS}/desk");
    server.put(&path, json!({"members": ["ana"]})).await.ok(201);
    let foreign = server.new_key("other", Scope::all()).await;
    send(&server, &foreign, "GET", &path, json!({}))
        .await
        .refused(404, "not_found");
    let weak = server.new_key("default", &[Scope::ApprovalsRespond]).await;
    send(&server, &weak, "PUT", &path, json!({"members": ["eve"]}))
        .await
        .refused(403, "forbidden");
}

#[tokio::test]
async fn delegate_decides_for_the_delegator() {
    let server = TestServer::new().await;
    let (ana, ben) = (
        person(&server, "ana", &[]).await,
        person(&server, "ben", &[]).await,
    );
    let asks = gate(json!({"approversList": ["ana"]}));
    server.register("asks", &[asks]).await;
    let run = server.create("asks").await;
    let claims = json!({"resumeValue": {"action": "accept"}, "actingFor": "ana"});
    let details = by_node(&server, &ben, &run, claims.clone())
        .await
        .refused(403, "forbidden");
    assert_eq!(details["reason"], "not-delegated");

    let until = "2999-01-01T00:00:00Z";
    let far = json!({"to": "ben", "endsAt": until});
    send(&server, &ana, "POST", DELEGATIONS, far)
        .await
        .refused(400, "validation_error");
    let end = server.now().plus_ms(3_600_000);
    let end = tandem_wire::v1::time::rfc3339(end);
    let forged = json!({"from": "ana", "to": "ben", "endsAt": end});
    send(&server, &ben, "POST", DELEGATIONS, forged)
        .await
        .refused(403, "forbidden");
    let made = send(
        &server,
        &ana,
        "POST",
        DELEGATIONS,
        json!({"to": "ben", "endsAt": end}),
    )
    .await
    .ok(201);
    by_node(&server, &ben, &run, claims).await.ok(200);
    let received = &payloads(&server, &run, "approval.received").await[0];
    assert_eq!(
        (&received["decidedBy"], &received["actingFor"]),
        (&json!("ben"), &json!("ana"))
    );

    // Without an explicit `actingFor`, a delegate acts for the delegator.
    let run = server.create("asks").await;
    by_node(&server, &ben, &run, accept()).await.ok(200);
    // Not after the delegation is deleted.
    let path = format!("{DELEGATIONS}/{}", made["delegationId"].as_str().unwrap());
    let eve = person(&server, "eve", &[]).await;
    send(&server, &eve, "DELETE", &path, json!({}))
        .await
        .refused(404, "not_found");
    let gone = server.call_as(&ana, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status.as_u16(), 204);
    let run = server.create("asks").await;
    by_node(&server, &ben, &run, accept())
        .await
        .refused(403, "forbidden");
}

#[tokio::test]
async fn run_creator_cannot_approve_it() {
    let server = TestServer::new().await;
    let (ina, ana) = (
        person(&server, "ina", &[]).await,
        person(&server, "ana", &[]).await,
    );
    let asks = gate(json!({"tandem": {"noSelfApproval": true}}));
    server.register("asks", &[asks]).await;
    let started = send(
        &server,
        &ina,
        "POST",
        "/v1/runs",
        json!({"workflowId": "asks"}),
    )
    .await;
    let run = started.ok(201)["runId"].as_str().unwrap().to_owned();
    let details = by_node(&server, &ina, &run, accept())
        .await
        .refused(403, "forbidden");
    assert_eq!(details["reason"], "self-approval");
    // Naming somebody else in the body has no effect.
    let posing = json!({"resumeValue": {"action": "accept", "voter": "ana"}});
    by_node(&server, &ina, &run, posing)
        .await
        .refused(403, "forbidden");
    by_node(&server, &ana, &run, accept()).await.ok(200);
}

#[tokio::test]
async fn escalated_interrupt_has_new_approvers_and_deadline() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana", &[]).await;
    let boss = person(&server, "boss", &[]).await;
    let levels = json!([{"approvers": ["boss"], "approverGroups": ["board"], "timeoutMs": 60_000}]);
    let run = server
        .start(
            "asks",
            &[gate(json!({
                "approversList": ["ana"], "timeoutMs": 30_000,
                "tandem": {"onTimeout": {"policy": "escalate", "levels": levels}},
            }))],
        )
        .await;
    let before = item(&server, &run).await;
    by_node(&server, &boss, &run, accept())
        .await
        .refused(403, "forbidden");
    server.advance(31).await;
    let after = item(&server, &run).await;
    assert_eq!(after["approvers"], json!(["boss"]));
    assert_eq!(after["approverGroups"], json!(["board"]));
    assert_eq!(after["level"], 1);
    assert_eq!(before["digest"], after["digest"], "the same is asked");
    assert!(before["deadline"].as_str() < after["deadline"].as_str());
    let escalated = &payloads(&server, &run, "tandem.interrupt.escalated").await[0];
    assert_eq!(escalated["approverGroupRefs"], json!(["board"]));
    assert_eq!(escalated["deadline"], after["deadline"]);
    by_node(&server, &ana, &run, accept())
        .await
        .refused(403, "forbidden");
    by_node(&server, &boss, &run, accept()).await.ok(200);
}

#[tokio::test]
async fn one_of_ten_concurrent_decisions_wins() {
    let server = TestServer::new().await;
    let run = server.start("asks", &[gate(json!({}))]).await;
    let deciding = (0..10).map(|_| by_node(&server, &server.key, &run, accept()));
    let replies = futures_util::future::join_all(deciding).await;
    let won = replies.iter().filter(|r| r.status.is_success()).count();
    assert_eq!(won, 1);
    for reply in replies.into_iter().filter(|r| !r.status.is_success()) {
        reply.refused(409, "interrupt_already_resolved");
    }
    let resolved = payloads(&server, &run, "interrupt.resolved").await;
    assert_eq!(resolved.len(), 1);
}

#[tokio::test]
async fn external_event_may_arrive_before_its_wait() {
    let server = TestServer::new().await;
    let wait = json!({"id": "ext", "typeId": "core.interrupt", "config": {
        "kind": "external-event", "data": {"eventType": "paid", "correlation": {"order": 7}}}});
    let run = server.start("waits", &[hour("nap"), wait]).await;
    let path = format!("/v1/host/tandem/runs/{run}/events");
    let event = |id: &str, order: u32| json!({"eventId": id, "eventType": "paid", "payload": {"order": order, "by": "card"}});
    assert_eq!(
        server.post(&path, event("e1", 8)).await.ok(202)["event"],
        "kept"
    );
    assert_eq!(
        server.post(&path, event("e2", 7)).await.ok(202)["event"],
        "kept"
    );
    let again = server.post(&path, event("e2", 7)).await.ok(200);
    assert_eq!(again["event"], "repeated");
    server.advance(3601).await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "completed");
    let resolved = &payloads(&server, &run, "interrupt.resolved").await[0];
    assert_eq!(resolved["eventId"], "e2");
    server
        .post(&path, event("e3", 7))
        .await
        .refused(409, "run_terminal");
    server
        .post(&path, json!({"eventType": "paid", "payload": {}}))
        .await
        .refused(400, "validation_error");
    server
        .post("/v1/host/tandem/runs/absent/events", event("e", 1))
        .await
        .refused(404, "not_found");
    let foreign = server.new_key("other", Scope::all()).await;
    send(&server, &foreign, "POST", &path, event("e", 1))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn conversation_gate_exchanges_turns_until_closed() {
    let server = TestServer::new().await;
    let found = server.get("/.well-known/openwop").await.ok(200);
    assert_eq!(found["conversationPrimitive"], true);
    let talk =
        json!({"id": "gate", "typeId": "core.conversationGate", "config": {"prompt": "Why?"}});
    let run = server.start("talks", &[talk]).await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "waiting-approval");
    assert_eq!(snapshot["interrupt"]["kind"], "conversation.exchange");
    assert_eq!(item(&server, &run).await["title"], "Why?");
    let op = |operation: &str, turn: Value| json!({"resumeValue": {"operation": operation, "turn": turn}});
    let sent = by_node(
        &server,
        &server.key,
        &run,
        op("exchange", json!({"content": "Because."})),
    )
    .await;
    assert_eq!(sent.ok(200)["status"], "waiting-approval");
    by_node(&server, &server.key, &run, op("close", Value::Null))
        .await
        .ok(200);
    by_node(
        &server,
        &server.key,
        &run,
        op("exchange", json!({"content": "And"})),
    )
    .await
    .refused(400, "validation_error");
    let exchanged = &payloads(&server, &run, "conversation.exchanged").await[0];
    assert_eq!(exchanged["turnIndex"], 1);
    assert_eq!(exchanged["turn"]["content"], "Because.");
    let closed = &payloads(&server, &run, "conversation.closed").await[0];
    assert_eq!(closed["finalTurn"]["turnIndex"], 2);
    assert!(
        payloads(&server, &run, "clarification.requested")
            .await
            .is_empty()
    );
}
