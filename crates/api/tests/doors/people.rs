//! Who may decide, through every door: by node, by id and by link; groups, delegations, denials,
//! questions that are handed on, and events that come before their wait.

use crate::stage::{Reply, Stage, hour};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId};

const GROUPS: &str = "/v1/host/tandem/groups";
const DELEGATIONS: &str = "/v1/host/tandem/delegations";

fn gate(config: Value) -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": config})
}

/// A key of a person.
async fn person(stage: &Stage, name: &str, roles: &[&str]) -> String {
    let scopes = [Scope::ApprovalsRespond, Scope::RunsRead, Scope::RunsCreate];
    let new = NewKey {
        principal: Some(Principal::new(name)),
        roles: roles.iter().map(ToString::to_string).collect(),
        ..NewKey::new(name, TenantId::new("default"), scopes)
    };
    stage.mint(new).await
}

async fn send(stage: &Stage, key: &str, method: &str, path: &str, body: Value) -> Reply {
    stage
        .call_as(key, method, path, &[], body.to_string())
        .await
}

fn accept() -> Value {
    json!({"resumeValue": {"action": "accept"}})
}

async fn by_node(stage: &Stage, key: &str, run: &str, body: Value) -> Reply {
    let path = format!("/v1/runs/{run}/interrupts/gate");
    send(stage, key, "POST", &path, body).await
}

async fn item(stage: &Stage, run: &str) -> Value {
    let path = format!("/v1/host/tandem/interrupts?status=any&runId={run}");
    stage.get(&path).await.ok(200)["interrupts"][0].clone()
}

async fn payloads(stage: &Stage, run: &str, kind: &str) -> Vec<Value> {
    let log = stage.log(run).await;
    let events = log["events"].as_array().unwrap().iter();
    events
        .filter(|event| event["type"] == kind)
        .map(|event| event["payload"].clone())
        .collect()
}

#[tokio::test]
async fn only_members_decide_whichever_door_they_take() {
    let stage = Stage::new().await;
    let (ana, eve) = (
        person(&stage, "ana", &[]).await,
        person(&stage, "eve", &[]).await,
    );
    stage
        .put(
            &format!("{GROUPS}/desk"),
            json!({"members": ["group:inner"]}),
        )
        .await
        .ok(201);
    stage
        .put(&format!("{GROUPS}/inner"), json!({"members": ["ana"]}))
        .await
        .ok(201);
    let asks = gate(json!({"approverGroupRefs": ["desk"], "tandem": {"priority": "high"}}));
    let run = stage.start("asks", &[asks]).await;
    let asked = item(&stage, &run).await;
    assert_eq!(asked["approverGroups"], json!(["desk"]));
    assert_eq!(asked["priority"], 8);

    let denied = by_node(&stage, &eve, &run, accept()).await;
    let details = denied.refused(403, "forbidden");
    assert_eq!(
        (&details["reason"], &details["principal"]),
        (&json!("not-eligible"), &json!("eve"))
    );
    let id = asked["interruptId"].as_str().unwrap();
    let path = format!("/v1/host/tandem/interrupts/{id}:resolve");
    send(&stage, &eve, "POST", &path, accept())
        .await
        .refused(403, "forbidden");
    let snapshot = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    let link = snapshot["interrupt"]["callbackUrl"].as_str().unwrap();
    let details = send(&stage, "", "POST", link, accept())
        .await
        .refused(403, "auth_elevation_required");
    assert_eq!(details["reason"], "link-too-weak");
    assert_eq!(snapshot["status"], "waiting-approval");
    let denials = payloads(&stage, &run, "tandem.decision.denied").await;
    let who: Vec<&Value> = denials.iter().map(|d| &d["principal"]).collect();
    assert_eq!(who, ["eve", "eve", "link"]);

    send(&stage, &ana, "POST", &path, accept()).await.ok(200);
    let received = &payloads(&stage, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "ana");
    assert_eq!(received["eligibleThrough"], json!(["desk"]));
    by_node(&stage, &eve, &run, accept())
        .await
        .refused(409, "interrupt_already_resolved");
}

#[tokio::test]
async fn a_name_in_the_body_is_shown_where_anybody_may_decide_and_replaces_nobody() {
    let stage = Stage::new().await;
    let ana = person(&stage, "ana", &[]).await;
    let said = json!({"resumeValue": {"action": "accept", "decidedBy": "the board"}});
    let run = stage.start("open", &[gate(json!({}))]).await;
    by_node(&stage, &ana, &run, said.clone()).await.ok(200);
    let received = &payloads(&stage, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "the board");
    let resolved = &payloads(&stage, &run, "interrupt.resolved").await[0];
    assert_eq!(resolved["resolvedBy"], "ana");

    let bound = gate(json!({"approversList": ["ana"]}));
    let run = stage.start("bound", &[bound]).await;
    by_node(&stage, &ana, &run, said).await.ok(200);
    let received = &payloads(&stage, &run, "approval.received").await[0];
    assert_eq!(received["decidedBy"], "ana");

    let run = stage.start("open", &[gate(json!({}))]).await;
    let long = json!({"resumeValue": {"action": "accept", "decidedBy": "x".repeat(300)}});
    let refused = by_node(&stage, &ana, &run, long).await;
    refused.refused(400, "validation_error");
}

#[tokio::test]
async fn membership_is_that_of_the_moment() {
    let stage = Stage::new().await;
    let ana = person(&stage, "ana", &["clerk"]).await;
    let run = stage
        .start("asks", &[gate(json!({"approverGroupRefs": ["desk"]}))])
        .await;
    by_node(&stage, &ana, &run, accept())
        .await
        .refused(403, "forbidden");
    let path = format!("{GROUPS}/desk");
    let members = json!({"members": ["role:clerk"]});
    stage.put(&path, members).await.ok(201);
    assert_eq!(
        stage.get(GROUPS).await.ok(200)["groups"][0]["members"],
        json!(["role:clerk"])
    );
    by_node(&stage, &ana, &run, accept()).await.ok(200);
    stage.put(&path, json!({"members": []})).await.ok(200);
    assert_eq!(stage.get(&path).await.ok(200)["members"], json!([]));
    let gone = stage.call_as(&stage.key, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status.as_u16(), 204);
    stage.get(&path).await.refused(404, "not_found");
    let received = &payloads(&stage, &run, "approval.received").await[0];
    assert_eq!(received["roles"], json!(["clerk"]), "the record stays");
}

#[tokio::test]
async fn groups_are_checked_and_belong_to_their_tenant() {
    let stage = Stage::new().await;
    for (name, body) in [
        ("desk", json!({"members": ["role:"]})),
        ("desk", json!({"members": ["group:desk"]})),
        ("desk", json!({"members": [1]})),
        ("desk", json!({})),
        ("de%20sk", json!({"members": []})),
    ] {
        let reply = stage.put(&format!("{GROUPS}/{name}"), body).await;
        reply.refused(400, "validation_error");
    }
    let path = format!("{GROUPS}/desk");
    stage.put(&path, json!({"members": ["ana"]})).await.ok(201);
    let foreign = stage.new_key("other", Scope::all()).await;
    send(&stage, &foreign, "GET", &path, json!({}))
        .await
        .refused(404, "not_found");
    let weak = stage.new_key("default", &[Scope::ApprovalsRespond]).await;
    send(&stage, &weak, "PUT", &path, json!({"members": ["eve"]}))
        .await
        .refused(403, "forbidden");
}

#[tokio::test]
async fn a_delegate_acts_for_whoever_let_them() {
    let stage = Stage::new().await;
    let (ana, ben) = (
        person(&stage, "ana", &[]).await,
        person(&stage, "ben", &[]).await,
    );
    let asks = gate(json!({"approversList": ["ana"]}));
    stage.register("asks", &[asks]).await;
    let run = stage.create("asks").await;
    let claims = json!({"resumeValue": {"action": "accept"}, "actingFor": "ana"});
    let details = by_node(&stage, &ben, &run, claims.clone())
        .await
        .refused(403, "forbidden");
    assert_eq!(details["reason"], "not-delegated");

    let until = "2999-01-01T00:00:00Z";
    let far = json!({"to": "ben", "endsAt": until});
    send(&stage, &ana, "POST", DELEGATIONS, far)
        .await
        .refused(400, "validation_error");
    let end = stage.now().plus_ms(3_600_000);
    let end = tandem_wire::v1::time::rfc3339(end);
    let forged = json!({"from": "ana", "to": "ben", "endsAt": end});
    send(&stage, &ben, "POST", DELEGATIONS, forged)
        .await
        .refused(403, "forbidden");
    let made = send(
        &stage,
        &ana,
        "POST",
        DELEGATIONS,
        json!({"to": "ben", "endsAt": end}),
    )
    .await
    .ok(201);
    by_node(&stage, &ben, &run, claims).await.ok(200);
    let received = &payloads(&stage, &run, "approval.received").await[0];
    assert_eq!(
        (&received["decidedBy"], &received["actingFor"]),
        (&json!("ben"), &json!("ana"))
    );

    // Without being told, a delegate acts for the one who may.
    let run = stage.create("asks").await;
    by_node(&stage, &ben, &run, accept()).await.ok(200);
    // Not after it was taken back.
    let path = format!("{DELEGATIONS}/{}", made["delegationId"].as_str().unwrap());
    let eve = person(&stage, "eve", &[]).await;
    send(&stage, &eve, "DELETE", &path, json!({}))
        .await
        .refused(404, "not_found");
    let gone = stage.call_as(&ana, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status.as_u16(), 204);
    let run = stage.create("asks").await;
    by_node(&stage, &ben, &run, accept())
        .await
        .refused(403, "forbidden");
}

#[tokio::test]
async fn whoever_starts_a_run_does_not_approve_it() {
    let stage = Stage::new().await;
    let (ina, ana) = (
        person(&stage, "ina", &[]).await,
        person(&stage, "ana", &[]).await,
    );
    let asks = gate(json!({"tandem": {"noSelfApproval": true}}));
    stage.register("asks", &[asks]).await;
    let started = send(
        &stage,
        &ina,
        "POST",
        "/v1/runs",
        json!({"workflowId": "asks"}),
    )
    .await;
    let run = started.ok(201)["runId"].as_str().unwrap().to_owned();
    let details = by_node(&stage, &ina, &run, accept())
        .await
        .refused(403, "forbidden");
    assert_eq!(details["reason"], "self-approval");
    // Naming somebody else in the body does not help.
    let posing = json!({"resumeValue": {"action": "accept", "voter": "ana"}});
    by_node(&stage, &ina, &run, posing)
        .await
        .refused(403, "forbidden");
    by_node(&stage, &ana, &run, accept()).await.ok(200);
}

#[tokio::test]
async fn a_question_handed_on_has_new_people_and_a_new_deadline() {
    let stage = Stage::new().await;
    let ana = person(&stage, "ana", &[]).await;
    let boss = person(&stage, "boss", &[]).await;
    let levels = json!([{"approvers": ["boss"], "approverGroups": ["board"], "timeoutMs": 60_000}]);
    let run = stage
        .start(
            "asks",
            &[gate(json!({
                "approversList": ["ana"], "timeoutMs": 30_000,
                "tandem": {"onTimeout": {"policy": "escalate", "levels": levels}},
            }))],
        )
        .await;
    let before = item(&stage, &run).await;
    by_node(&stage, &boss, &run, accept())
        .await
        .refused(403, "forbidden");
    stage.advance(31).await;
    let after = item(&stage, &run).await;
    assert_eq!(after["approvers"], json!(["boss"]));
    assert_eq!(after["approverGroups"], json!(["board"]));
    assert_eq!(after["level"], 1);
    assert_eq!(before["digest"], after["digest"], "the same is asked");
    assert!(before["deadline"].as_str() < after["deadline"].as_str());
    let told = &payloads(&stage, &run, "tandem.interrupt.escalated").await[0];
    assert_eq!(told["approverGroupRefs"], json!(["board"]));
    assert_eq!(told["deadline"], after["deadline"]);
    by_node(&stage, &ana, &run, accept())
        .await
        .refused(403, "forbidden");
    by_node(&stage, &boss, &run, accept()).await.ok(200);
}

#[tokio::test]
async fn of_ten_who_decide_at_once_one_does() {
    let stage = Stage::new().await;
    let run = stage.start("asks", &[gate(json!({}))]).await;
    let deciding = (0..10).map(|_| by_node(&stage, &stage.key, &run, accept()));
    let replies = futures_util::future::join_all(deciding).await;
    let won = replies.iter().filter(|r| r.status.is_success()).count();
    assert_eq!(won, 1);
    for reply in replies.into_iter().filter(|r| !r.status.is_success()) {
        reply.refused(409, "interrupt_already_resolved");
    }
    let resolved = payloads(&stage, &run, "interrupt.resolved").await;
    assert_eq!(resolved.len(), 1);
}

#[tokio::test]
async fn an_event_may_come_before_its_wait() {
    let stage = Stage::new().await;
    let wait = json!({"id": "ext", "typeId": "core.interrupt", "config": {
        "kind": "external-event", "data": {"eventType": "paid", "correlation": {"order": 7}}}});
    let run = stage.start("waits", &[hour("nap"), wait]).await;
    let path = format!("/v1/host/tandem/runs/{run}/events");
    let event = |id: &str, order: u32| json!({"eventId": id, "eventType": "paid", "payload": {"order": order, "by": "card"}});
    assert_eq!(
        stage.post(&path, event("e1", 8)).await.ok(202)["event"],
        "kept"
    );
    assert_eq!(
        stage.post(&path, event("e2", 7)).await.ok(202)["event"],
        "kept"
    );
    let again = stage.post(&path, event("e2", 7)).await.ok(200);
    assert_eq!(again["event"], "repeated");
    stage.advance(3601).await;
    let snapshot = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "completed");
    let resolved = &payloads(&stage, &run, "interrupt.resolved").await[0];
    assert_eq!(resolved["eventId"], "e2");
    stage
        .post(&path, event("e3", 7))
        .await
        .refused(409, "run_terminal");
    stage
        .post(&path, json!({"eventType": "paid", "payload": {}}))
        .await
        .refused(400, "validation_error");
    stage
        .post("/v1/host/tandem/runs/absent/events", event("e", 1))
        .await
        .refused(404, "not_found");
    let foreign = stage.new_key("other", Scope::all()).await;
    send(&stage, &foreign, "POST", &path, event("e", 1))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn a_question_is_talked_over_until_it_is_closed() {
    let stage = Stage::new().await;
    let found = stage.get("/.well-known/openwop").await.ok(200);
    assert_eq!(found["conversationPrimitive"], true);
    let talk =
        json!({"id": "gate", "typeId": "core.conversationGate", "config": {"prompt": "Why?"}});
    let run = stage.start("talks", &[talk]).await;
    let snapshot = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "waiting-approval");
    assert_eq!(snapshot["interrupt"]["kind"], "conversation.exchange");
    assert_eq!(item(&stage, &run).await["title"], "Why?");
    let op = |operation: &str, turn: Value| json!({"resumeValue": {"operation": operation, "turn": turn}});
    let said = by_node(
        &stage,
        &stage.key,
        &run,
        op("exchange", json!({"content": "Because."})),
    )
    .await;
    assert_eq!(said.ok(200)["status"], "waiting-approval");
    by_node(&stage, &stage.key, &run, op("close", Value::Null))
        .await
        .ok(200);
    by_node(
        &stage,
        &stage.key,
        &run,
        op("exchange", json!({"content": "And"})),
    )
    .await
    .refused(400, "validation_error");
    let exchanged = &payloads(&stage, &run, "conversation.exchanged").await[0];
    assert_eq!(exchanged["turnIndex"], 1);
    assert_eq!(exchanged["turn"]["content"], "Because.");
    let closed = &payloads(&stage, &run, "conversation.closed").await[0];
    assert_eq!(closed["finalTurn"]["turnIndex"], 2);
    assert!(
        payloads(&stage, &run, "clarification.requested")
            .await
            .is_empty()
    );
}
