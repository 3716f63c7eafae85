//! The audit log and decision receipts: their content, who may read them, and offline verification.

use crate::test_server::{Reply, TestServer, hour, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_runtime::audit::{ExportVerification, ExportVerifier, PublicKey, check_receipt};

const EXPORT: &str = "/v1/host/tandem/audit/export";

fn gate(id: &str, config: Value) -> Value {
    let mut full = json!({"title": id, "actions": ["accept", "reject"]});
    for (name, value) in config.as_object().unwrap() {
        full[name] = value.clone();
    }
    json!({"id": id, "typeId": "core.approvalGate", "config": full})
}

impl TestServer {
    pub(crate) async fn audit_entries(&self) -> Vec<Value> {
        let reply = self.get(EXPORT).await;
        let lines = reply
            .text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: Value| line["entry"].clone())
            .filter(|e| !e.is_null())
            .collect()
    }

    /// The id of the only interrupt of a run.
    async fn question(&self, run: &str) -> String {
        let path = format!("/v1/host/tandem/interrupts?runId={run}");
        let items = self.get(&path).await.ok(200);
        items["interrupts"][0]["interruptId"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn receipt(&self, interrupt: &str) -> Reply {
        self.get(&format!("/v1/host/tandem/receipts/{interrupt}"))
            .await
    }

    fn public_key(&self) -> PublicKey {
        self.audit_signer.public_key()
    }
}

fn checked(text: &str, key: PublicKey) -> Result<ExportVerification, String> {
    let mut verifier = ExportVerifier::new(Some(key));
    text.lines().try_for_each(|line| verifier.line(line))?;
    verifier.finish()
}

#[tokio::test]
async fn mutations_are_audited_with_their_actor() {
    let server = TestServer::new().await;
    let me = server.identity().await;
    let run = server.start("w", &[hour("nap")]).await;
    let now = json!({"drainPolicy": "immediate"});
    for (verb, body) in [
        (":pause", now),
        (":resume", json!({})),
        ("/cancel", json!({})),
        ("/cancel", json!({})),
    ] {
        let reply = server.post(&format!("/v1/runs/{run}{verb}"), body).await;
        assert!(reply.status.is_success(), "{reply:?}");
    }
    let new_key = json!({"name": "k", "scopes": ["runs:read"]});
    let made = server.post("/v1/host/tandem/keys", new_key).await.ok(201);
    let path = format!("/v1/host/tandem/keys/{}", made["keyId"].as_str().unwrap());
    for _ in 0..2 {
        let revoked = server.call_as(&server.key, "DELETE", &path, &[], "").await;
        assert_eq!(revoked.status, 200);
    }
    let hook = json!({"url": "https://example.com/in?token=s3cret", "events": ["run.completed"]});
    let hook = server.post("/v1/webhooks", hook).await.ok(201);
    let hook_id = hook["webhookId"].as_str().unwrap();
    let path = format!("/v1/webhooks/{hook_id}");
    server.call_as(&server.key, "DELETE", &path, &[], "").await;
    let workflow = "/v1/host/tandem/workflows/w";
    server
        .call_as(&server.key, "DELETE", workflow, &[], "")
        .await;
    let weak = server.new_key("default", &[Scope::RunsRead]).await;
    let denied = server.call_as(&weak, "POST", "/v1/runs", &[], "{}").await;
    denied.refused(403, "forbidden");

    let entries = server.audit_entries().await;
    let actions: Vec<(&str, &str)> = entries
        .iter()
        .filter(|e| e["actor"] == format!("key:{}", me.key_id))
        .map(|e| (e["action"].as_str().unwrap(), e["target"].as_str().unwrap()))
        .collect();
    let key = made["keyId"].as_str().unwrap();
    let expected = [
        ("key.used", &*me.key_id),
        ("workflow.register", "w"),
        ("run.create", &run),
        ("run.pause", &run),
        ("run.resume", &run),
        ("run.cancel", &run),
        ("key.created", key),
        ("key.revoked", key),
        ("webhook.register", hook_id),
        ("webhook.unregister", hook_id),
        ("workflow.unregister", "w"),
    ];
    assert_eq!(
        actions, expected,
        "each mutation once, and none for requests that changed nothing"
    );
    let last = entries.last().unwrap();
    assert_eq!(last["action"], "access.denied");
    assert_eq!(last["details"]["scope"], "runs:create");
    assert_eq!(entries[0]["actor"], "host", "the first key is the host's");
    let text = json!(entries).to_string();
    let shown = [&made["secret"], &hook["secret"]].map(|secret| secret.as_str().unwrap());
    for secret in [&server.key, &weak, shown[0], shown[1], "s3cret"] {
        assert!(!text.contains(secret), "a secret in the audit log");
    }
}

#[tokio::test]
async fn receipt_names_decider_and_verifies_offline() {
    let server = TestServer::new().await;
    let mut new = NewKey::new("ana", "default".into(), Scope::all().iter().copied());
    new.roles = vec!["finance".into()];
    new.principal = Some("ana".into());
    let ana = server.mint(new).await;
    let run = server
        .start("w", &[gate("gate", json!({})), noop("pay")])
        .await;
    let id = server.question(&run).await;
    server.receipt(&id).await.refused(404, "not_found");
    server
        .receipt("int-nobody")
        .await
        .refused(404, "interrupt_not_found");
    let shown = server
        .get(&format!("/v1/host/tandem/interrupts/{id}"))
        .await
        .ok(200);
    let body = json!({"resumeValue": {"action": "accept", "feedback": "fine s3cret"}}).to_string();
    let path = format!("/v1/host/tandem/interrupts/{id}:resolve");
    server.call_as(&ana, "POST", &path, &[], body).await.ok(200);

    let first = server.receipt(&id).await;
    let receipt = first.ok(200);
    assert_eq!(check_receipt(&receipt, server.public_key()), Ok(()));
    assert_eq!(receipt["interruptId"], id.as_str());
    let decision = &receipt["decision"];
    assert_eq!(decision["digest"], shown["digest"]);
    assert_eq!(decision["outcome"], "accepted");
    assert_eq!(decision["runId"], run.as_str());
    assert_eq!(decision["by"]["principal"], "ana");
    assert_eq!(decision["by"]["roles"], json!(["finance"]));
    assert!(
        !first.text.contains("s3cret"),
        "what was written stays in the run's log"
    );
    let entry = server.audit_entries().await;
    let entry = entry
        .iter()
        .find(|e| e["seq"] == receipt["auditSequence"])
        .unwrap();
    assert_eq!(entry["target"], id.as_str());
    assert_eq!(&entry["details"], decision);
    assert_eq!(
        server.receipt(&id).await.text,
        first.text,
        "the same every time"
    );

    let stranger = server.new_key("other", Scope::all()).await;
    let path = format!("/v1/host/tandem/receipts/{id}");
    let theirs = server.call_as(&stranger, "GET", &path, &[], "").await;
    theirs.refused(404, "interrupt_not_found");
    let mut forged = receipt.clone();
    forged["decision"]["by"]["principal"] = json!("eve");
    assert!(check_receipt(&forged, server.public_key()).is_err());
}

#[tokio::test]
async fn receipts_cover_timeouts_links_and_quorums() {
    let server = TestServer::new().await;
    let run = server
        .start("timed", &[gate("gate", json!({"timeoutMs": 60_000}))])
        .await;
    let timed = server.question(&run).await;
    let run = server.start("linked", &[gate("gate", json!({}))]).await;
    let linked = server.question(&run).await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    let token = snapshot["interrupt"]["interruptToken"].as_str().unwrap();
    let answer = json!({"resumeValue": {"action": "reject"}});
    let link = format!("/v1/interrupts/{token}");
    server
        .call_as("", "POST", &link, &[], answer.to_string())
        .await
        .ok(200);
    server.advance(61).await;
    let timed = server.receipt(&timed).await.ok(200);
    assert_eq!(timed["decision"]["by"], json!({"via": "host", "roles": []}));
    assert_eq!(timed["decision"]["reason"], "timeout");
    let linked = server.receipt(&linked).await.ok(200);
    assert_eq!(linked["decision"]["by"]["via"], "link");
    assert_eq!(linked["decision"]["outcome"], "rejected");

    let run = server
        .start("quorum", &[gate("gate", json!({"requiredApprovals": 2}))])
        .await;
    let id = server.question(&run).await;
    for voter in ["ana", "bo"] {
        server.receipt(&id).await.refused(404, "not_found");
        let mut new = NewKey::new(voter, "default".into(), Scope::all().iter().copied());
        new.principal = Some(voter.into());
        let key = server.mint(new).await;
        let vote = json!({"resumeValue": {"action": "accept"}}).to_string();
        let path = format!("/v1/host/tandem/interrupts/{id}:resolve");
        server.call_as(&key, "POST", &path, &[], vote).await.ok(200);
    }
    let receipt = server.receipt(&id).await.ok(200);
    let votes = receipt["decision"]["votes"].as_array().unwrap();
    assert_eq!(
        votes.iter().map(|v| &v["voter"]).collect::<Vec<_>>(),
        ["ana", "bo"]
    );
    let entries = server.audit_entries().await;
    let responded = entries
        .iter()
        .filter(|e| e["action"] == "interrupt.respond");
    assert_eq!(
        responded.count(),
        1,
        "the first vote; the second is the decision"
    );
}

#[tokio::test]
async fn verify_responds_in_the_published_shape() {
    let server = TestServer::new().await;
    server.start("w", &[noop("a")]).await;
    for query in [
        "",
        "?fromSeq=0",
        "?toSeq=3",
        "?fromSeq=-1&toSeq=3",
        "?fromSeq=a&toSeq=3",
        "?fromSeq=3&toSeq=2",
        "?fromSeq=0&toSeq=3&x=1",
    ] {
        let reply = server.get(&format!("/v1/audit/verify{query}")).await;
        reply.refused(400, "validation_error");
    }
    let weak = server.new_key("default", &[Scope::RunsRead]).await;
    let path = "/v1/audit/verify?fromSeq=0&toSeq=100";
    server
        .call_as(&weak, "GET", path, &[], "")
        .await
        .refused(403, "forbidden");
    server
        .call_as("", "GET", path, &[], "")
        .await
        .refused(401, "unauthenticated");
    let sound = json!({"fromSeq": 0, "toSeq": 100, "chainValid": true, "checkpointsValid": true,
                       "checkpoints": [], "anomalies": []});
    assert_eq!(server.get(path).await.ok(200), sound);
    server.audit_signer.seal_all().await.unwrap();
    let sealed = server.get(path).await.ok(200);
    let seal = &sealed["checkpoints"][0];
    assert_eq!(seal.as_object().unwrap().len(), 4, "{seal}");
    assert_eq!(seal["checkpoint"], "cp-1");
    assert_eq!(sealed["chainValid"], true);
    let discovered = server.get("/.well-known/openwop").await.ok(200);
    let integrity = &discovered["auth"]["auditLogIntegrity"];
    assert_eq!(
        integrity["checkpointPublicKey"],
        server.public_key().to_spki()
    );
    assert_eq!(integrity["checkpointIntervalEntries"], 1000);
    let profiles = discovered["auth"]["profiles"].as_array().unwrap();
    assert!(profiles.contains(&json!("openwop-audit-log-integrity")));
}

#[tokio::test]
async fn export_withholds_other_tenants_entries_and_verifies() {
    let server = TestServer::new().await;
    server.start("secret-plans", &[noop("a")]).await;
    let other = server.new_key("other", Scope::all()).await;
    let reply = server.call_as(&other, "GET", EXPORT, &[], "").await;
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
    assert!(
        !reply.text.contains("secret-plans"),
        "another tenant's workflow"
    );
    let report = checked(&reply.text, server.public_key()).unwrap();
    assert!(report.withheld > 0 && report.withheld < report.entries);
    let own = checked(&server.get(EXPORT).await.text, server.public_key()).unwrap();
    assert_eq!(own.withheld, 2, "the other tenant's key, and its use");
    let weak = server.new_key("default", &[Scope::RunsRead]).await;
    server
        .call_as(&weak, "GET", EXPORT, &[], "")
        .await
        .refused(403, "forbidden");
}
