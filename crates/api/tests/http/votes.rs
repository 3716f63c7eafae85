//! Votes of a quorum, through every endpoint: whose they are, what they were about, and what the
//! receipt tells of them.

use crate::console::sign_in;
use crate::test_server::{Reply, TestServer, chain, hour};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::{Principal, TenantId};

fn gate(config: Value) -> Value {
    let mut full = json!({
        "actions": ["accept", "reject", "edit-accept"],
        "artifactData": {"amount": 10},
    });
    for (key, value) in config.as_object().unwrap() {
        full[key] = value.clone();
    }
    json!({"id": "gate", "typeId": "core.approvalGate", "config": full})
}

async fn person(server: &TestServer, name: &str) -> String {
    let new = NewKey {
        principal: Some(Principal::new(name)),
        ..NewKey::new(name, TenantId::new("default"), Scope::all().iter().copied())
    };
    server.mint(new).await
}

/// An open question and the ways to answer it.
struct Open<'a> {
    server: &'a TestServer,
    run: String,
    id: String,
    link: String,
}

impl<'a> Open<'a> {
    async fn start(server: &'a TestServer, config: Value) -> Self {
        let run = server.start("asks", &[gate(config)]).await;
        Self::of(server, run).await
    }

    async fn of(server: &'a TestServer, run: String) -> Self {
        let path = format!("/v1/host/tandem/interrupts?runId={run}");
        let items = server.get(&path).await.ok(200);
        let id = items["interrupts"][0]["interruptId"].as_str().unwrap();
        let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
        let link = snapshot["interrupt"]["callbackUrl"].as_str();
        Self {
            server,
            id: id.to_owned(),
            link: link.unwrap_or_default().to_owned(),
            run,
        }
    }

    async fn send(&self, key: &str, path: &str, body: Value) -> Reply {
        let body = body.to_string();
        self.server.call_as(key, "POST", path, &[], body).await
    }

    async fn by_id(&self, key: &str, value: Value) -> Reply {
        let path = format!("/v1/host/tandem/interrupts/{}:resolve", self.id);
        self.send(key, &path, json!({"resumeValue": value})).await
    }

    /// By id, by node and by link.
    fn paths(&self) -> [String; 3] {
        [
            format!("/v1/host/tandem/interrupts/{}:resolve", self.id),
            format!("/v1/runs/{}/interrupts/gate", self.run),
            self.link.clone(),
        ]
    }

    async fn item(&self) -> Value {
        let path = format!("/v1/host/tandem/interrupts/{}", self.id);
        self.server.get(&path).await.ok(200)
    }

    async fn receipt(&self) -> Value {
        let path = format!("/v1/host/tandem/receipts/{}", self.id);
        self.server.get(&path).await.ok(200)["decision"].clone()
    }

    async fn card(&self) -> String {
        let cookie = sign_in(self.server).await;
        let path = format!("/console/inbox/{}", self.id);
        let headers = [("cookie", cookie.as_str())];
        let page = self.server.call_as("", "GET", &path, &headers, "").await;
        assert_eq!(page.status.as_u16(), 200, "{page:?}");
        page.text
    }
}

fn accept() -> Value {
    json!({"action": "accept"})
}

fn edit(amount: u32) -> Value {
    json!({"action": "edit-accept", "editedArtifactData": {"amount": amount}})
}

/// Voter and who claimed the name.
fn names(votes: &Value) -> Vec<(&str, Option<&str>)> {
    let votes = votes.as_array().unwrap().iter();
    votes
        .map(|vote| (vote["voter"].as_str().unwrap(), vote["claimedBy"].as_str()))
        .collect()
}

#[tokio::test]
async fn claimed_voter_is_marked_in_votes_receipt_and_console() {
    let server = TestServer::new().await;
    // A key that was made for nobody by name, so that several people may share it.
    let shared = server.new_key("default", Scope::all()).await;
    let sharer = server.keyring.authenticate(&shared, server.now()).await;
    let sharer = sharer.unwrap().principal.to_string();
    let ben = person(&server, "ben").await;
    let quorum = json!({"requiredApprovals": 3, "rejectionPolicy": "majority"});
    let open = Open::start(&server, quorum).await;
    open.by_id(&ben, accept()).await.ok(200);
    let claim = json!({"action": "reject", "voter": "ben"});
    let reply = open.by_id(&shared, claim).await.ok(200);
    let expected = [("ben", None), ("ben", Some(&*sharer))];
    assert_eq!(names(&reply["interrupt"]["votes"]), expected);
    assert_eq!(names(&open.item().await["votes"]), expected);
    let claimed = format!("name claimed by {sharer}");
    assert!(open.card().await.contains(&claimed));
    for bad in [String::new(), "z".repeat(257)] {
        let refused = open.by_id(&shared, json!({"action": "accept", "voter": bad}));
        refused.await.refused(400, "validation_error");
    }
    let second = json!({"action": "reject", "voter": "eva"});
    open.by_id(&shared, second).await.ok(200);
    let receipt = open.receipt().await;
    let expected = [
        ("ben", None),
        ("ben", Some(&*sharer)),
        ("eva", Some(&*sharer)),
    ];
    assert_eq!(names(&receipt["votes"]), expected);
    assert_eq!(receipt["by"]["principal"], sharer);
    let log = server.log(&open.run).await;
    let events = log["events"].as_array().unwrap().iter();
    let received: Vec<_> = events
        .filter(|event| event["type"] == "approval.received")
        .map(|event| {
            (
                &event["payload"]["decidedBy"],
                &event["payload"]["claimedBy"],
            )
        })
        .collect();
    let (sharer, ben, eva) = (json!(sharer), json!("ben"), json!("eva"));
    let expected = [(&ben, &Value::Null), (&ben, &sharer), (&eva, &sharer)];
    assert_eq!(received, expected);
}

#[tokio::test]
async fn key_of_one_person_names_no_other_voter_on_any_route() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana").await;
    server
        .register("asks", &[gate(json!({"requiredApprovals": 2}))])
        .await;
    let body = json!({"workflowId": "asks"}).to_string();
    let created = server.call_as(&ana, "POST", "/v1/runs", &[], body).await;
    let run = created.ok(201)["runId"].as_str().unwrap().to_owned();
    let mut open = Open::of(&server, run).await;
    // The link in an answer to a reader is theirs.
    let snapshot = format!("/v1/runs/{}", open.run);
    let snapshot = server
        .call_as(&ana, "GET", &snapshot, &[], "")
        .await
        .ok(200);
    open.link = snapshot["interrupt"]["callbackUrl"]
        .as_str()
        .unwrap()
        .to_owned();
    let claim = json!({"resumeValue": {"action": "accept", "voter": "ben"}});
    for path in open.paths() {
        let key = if path == open.link { "" } else { &ana };
        let refused = open.send(key, &path, claim.clone()).await;
        assert_eq!(refused.refused(403, "forbidden")["reason"], "other-voter");
    }
    assert_eq!(open.item().await["votes"], Value::Null);
    // One person is one voter, by key, by name and by link.
    let own = json!({"resumeValue": {"action": "accept", "voter": "ana"}});
    for path in open.paths() {
        let key = if path == open.link { "" } else { &ana };
        for body in [own.clone(), json!({"resumeValue": accept()})] {
            let reply = open.send(key, &path, body).await.ok(200);
            assert_eq!(names(&reply["interrupt"]["votes"]), [("ana", None)]);
            assert_eq!(reply["status"], "waiting-approval");
        }
    }
    let ben = person(&server, "ben").await;
    let reply = open.by_id(&ben, accept()).await.ok(200);
    assert_eq!(
        names(&reply["interrupt"]["votes"]),
        [("ana", None), ("ben", None)]
    );
}

#[tokio::test]
async fn same_link_twice_is_one_vote() {
    let server = TestServer::new().await;
    let open = Open::start(&server, json!({"requiredApprovals": 2})).await;
    for _ in 0..2 {
        let body = json!({"resumeValue": accept()});
        let reply = open.send("", &open.link, body).await.ok(200);
        assert_eq!(reply["status"], "waiting-approval");
        assert_eq!(names(&reply["interrupt"]["votes"]), [("link", None)]);
    }
}

#[tokio::test]
async fn accept_with_changes_is_refused_on_every_route() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana").await;
    let open = Open::start(&server, json!({})).await;
    let value = json!({"action": "accept", "editedArtifactData": {"amount": 1}});
    for path in open.paths() {
        let key = if path == open.link { "" } else { &ana };
        let refused = open.send(key, &path, json!({"resumeValue": value})).await;
        refused.refused(400, "validation_error");
        assert!(refused.text.contains("edit-accept"), "{refused:?}");
    }
    assert_eq!(open.item().await["status"], "open");
}

#[tokio::test]
async fn every_route_refuses_a_stale_digest() {
    let server = TestServer::new().await;
    let (ana, ben) = (person(&server, "ana").await, person(&server, "ben").await);
    let open = Open::start(&server, json!({"requiredApprovals": 2})).await;
    let seen = server.call_as("", "GET", &open.link, &[], "").await.ok(200);
    open.by_id(&ben, edit(100_000)).await.ok(200);
    let current = open.item().await["digest"].clone();
    for path in open.paths() {
        let key = if path == open.link { "" } else { &ana };
        let body = json!({"resumeValue": accept(), "digest": seen["digest"]});
        let details = open.send(key, &path, body).await;
        assert_eq!(details.refused(409, "artifact_changed")["digest"], current);
    }
    let body = json!({"resumeValue": accept(), "digest": current});
    open.send("", &open.link, body.clone()).await.ok(200);
    let late = open.send(&ana, &open.paths()[1], body).await;
    late.refused(409, "interrupt_already_resolved");
}

#[tokio::test]
async fn receipt_has_the_accepted_edit_and_the_delegate() {
    let server = TestServer::new().await;
    let (ana, ben) = (person(&server, "ana").await, person(&server, "ben").await);
    let eva = person(&server, "eva").await;
    let end = tandem_wire::v1::time::rfc3339(server.now().plus_ms(3_600_000));
    let delegation = json!({"to": "ben", "endsAt": end}).to_string();
    let path = "/v1/host/tandem/delegations";
    let made = server.call_as(&ana, "POST", path, &[], delegation).await;
    made.ok(201);
    let listed = json!({"requiredApprovals": 2, "approversList": ["ana", "eva"]});
    let open = Open::start(&server, listed).await;
    let before = open.item().await["data"]["artifactData"].clone();
    let body = json!({"resumeValue": edit(7), "actingFor": "ana"});
    open.send(&ben, &open.paths()[0], body).await.ok(200);
    open.by_id(&eva, accept()).await.ok(200);
    let receipt = open.receipt().await;
    let digest = tandem_runtime::digest;
    assert_eq!(receipt["artifact"]["before"], digest(&before));
    assert_eq!(receipt["artifact"]["after"], digest(&json!({"amount": 7})));
    let votes = receipt["votes"].as_array().unwrap();
    assert_eq!(
        (&votes[0]["voter"], &votes[0]["delegate"]),
        (&json!("ana"), &json!("ben"))
    );
    assert!(votes[1].get("delegate").is_none());
    let item = open.item().await;
    assert_eq!(
        (&item["proposed"], &item["edited"]),
        (&before, &json!({"amount": 7}))
    );
}

#[tokio::test]
async fn receipt_of_a_plain_quorum_has_no_edit() {
    let server = TestServer::new().await;
    let (ana, ben) = (person(&server, "ana").await, person(&server, "ben").await);
    let open = Open::start(&server, json!({"requiredApprovals": 2})).await;
    open.by_id(&ana, accept()).await.ok(200);
    open.by_id(&ben, edit(10)).await.ok(200);
    assert!(open.receipt().await.get("artifact").is_none());
    assert!(open.item().await.get("edited").is_none());
}

#[tokio::test]
async fn question_of_a_paused_run_keeps_its_time() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana").await;
    let mut document = chain("asks", &[gate(json!({"timeoutMs": 60_000})), hour("nap")]);
    document["edges"] = json!([]);
    let put = server.put("/v1/host/tandem/workflows/asks", document).await;
    assert!(put.status.is_success(), "{put:?}");
    let run = server.create("asks").await;
    let open = Open::of(&server, run.clone()).await;
    let before = open.item().await["deadline"].clone();
    assert!(before.is_string());
    let pause = format!("/v1/runs/{run}:pause");
    let resume = format!("/v1/runs/{run}:resume");
    let immediate = || json!({"drainPolicy": "immediate"});
    server.post(&pause, immediate()).await.ok(202);
    server.advance(120).await;
    let item = open.item().await;
    assert_eq!(
        (&item["status"], &item["deadline"]),
        (&json!("open"), &Value::Null)
    );
    server.post(&resume, json!({})).await.ok(202);
    let item = open.item().await;
    assert_eq!(item["status"], "open");
    assert!(
        item["deadline"].as_str() > before.as_str(),
        "{item} after {before}"
    );
    server.advance(50).await;
    server.post(&pause, immediate()).await.ok(202);
    server.advance(120).await;
    open.by_id(&ana, accept()).await.ok(200);
}

#[tokio::test]
async fn overdue_question_is_expired_before_and_after_its_timer() {
    let server = TestServer::new().await;
    let ana = person(&server, "ana").await;
    let open = Open::start(&server, json!({"timeoutMs": 60_000})).await;
    let deadline = open.item().await["deadline"].clone();
    server.advance(120).await;
    let details = open.by_id(&ana, accept()).await;
    assert_eq!(
        details.refused(409, "interrupt_already_resolved")["decidedAt"],
        deadline
    );
    let item = open.item().await;
    assert_eq!(
        (&item["status"], &item["decidedAt"]),
        (&json!("closed"), &deadline)
    );
}
