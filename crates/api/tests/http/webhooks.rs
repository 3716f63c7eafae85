//! Webhooks over HTTP: a secret is shown once, only own events are delivered, and nothing is
//! delivered after deletion.

use crate::console::{csrf, page, sign_in};
use crate::test_server::{Reply, TestServer, noop, signer};
use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use tandem_access::{Keyring, LinkClaims, LinkIntent, NewKey, Scope};
use tandem_record::{Event, Owner, Partition, Timestamp, Webhook, WebhookId};
use tandem_runtime::{Announcement, Fault, StarterAccess, WebhookDelivery, WebhookSender};
use tandem_wire::v1::callback::{self, CallbackNotification};
use tandem_wire::v1::project::SignedLink;

const HOOKS: &str = "/v1/webhooks";
const OWN: &str = "/v1/host/tandem/webhooks";

/// Accepts every delivery and records it.
#[derive(Default)]
pub(crate) struct RecordingWebhookSender {
    pub(crate) taken: Mutex<Vec<(WebhookId, String)>>,
    /// URL and body of each notification.
    pub(crate) announced: Mutex<Vec<(String, Value)>>,
    pub(crate) keyring: OnceLock<Arc<Keyring>>,
}

#[async_trait]
impl WebhookSender for RecordingWebhookSender {
    fn event_type(&self, event: &Event) -> &'static str {
        tandem_wire::v1::project::event_type(event)
    }

    async fn vet(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://example.com/") {
            Ok(())
        } else {
            Err("it leads inside".to_owned())
        }
    }

    fn secret(&self, webhook: &WebhookId, generation: u32) -> String {
        format!("secret {generation} of {webhook}")
    }

    async fn may_receive(&self, webhook: &Webhook, now: Timestamp) -> Result<bool, Fault> {
        let of = Partition {
            tenant: webhook.tenant.clone(),
            workspace: webhook.workspace.clone(),
        };
        let by = webhook.created_by.as_ref().expect("routes tell who");
        let keyring = self.keyring.get().expect("the server has one");
        keyring.holds_scope(by, Scope::RunsRead, &of, now).await
    }

    async fn starter_access(&self, owner: &Owner, now: Timestamp) -> Result<StarterAccess, Fault> {
        let by = owner.principal.as_ref().expect("routes tell who");
        let (keys, of) = (self.keyring.get().unwrap(), Partition::from(owner));
        Ok(StarterAccess {
            may_read: keys.holds_scope(by, Scope::RunsRead, &of, now).await?,
            may_answer: keys
                .holds_scope(by, Scope::ApprovalsRespond, &of, now)
                .await?,
        })
    }

    async fn deliver(&self, delivery: &WebhookDelivery<'_>) -> Result<String, String> {
        let taken = (delivery.webhook.id.clone(), delivery.run.run_id.to_string());
        self.taken.lock().push(taken);
        Ok("answered 200".to_owned())
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<String, String> {
        let intent = LinkIntent::of(announcement.may_answer);
        let claims = LinkClaims::for_interrupt(
            announcement.run,
            announcement.question,
            intent,
            announcement.issued_to,
            announcement.sent_at,
        );
        let body = callback::body(&CallbackNotification {
            run: announcement.run,
            workflow: announcement.workflow,
            parent_and_root: announcement.parent_and_root,
            question: announcement.question,
            link: &SignedLink {
                token: signer().sign(&claims),
                expires_at: claims.expires_at,
            },
            base: "",
        });
        self.announced
            .lock()
            .push((announcement.url.to_owned(), body));
        Ok("answered 200".to_owned())
    }
}

fn new_webhook() -> Value {
    json!({"url": "https://example.com/in", "events": ["run.completed"]})
}

async fn delete(server: &TestServer, key: &str, path: &str) -> Reply {
    server.call_as(key, "DELETE", path, &[], "").await
}

fn id(registered: &Value) -> &str {
    registered["webhookId"].as_str().unwrap()
}

#[tokio::test]
async fn a_webhook_is_registered_used_read_and_ended() {
    let server = TestServer::new().await;
    let made = server.post(HOOKS, new_webhook()).await.ok(201);
    assert!(id(&made).starts_with("wh-"));
    assert_eq!(made["subscriptionId"], made["webhookId"], "both names");
    assert_eq!(made["secret"], format!("secret 0 of {}", id(&made)));
    assert_eq!(made["secretFingerprint"].as_str().unwrap().len(), 8);
    assert_eq!(made["signatureAlgorithm"], "v1");
    assert_eq!(made["tenantId"], "default");
    let run = server.start("flow", &[noop("a")]).await;
    server.advance(0).await;
    let expected = vec![(WebhookId::new(id(&made)), run.clone())];
    assert_eq!(*server.webhook_sender.taken.lock(), expected);

    let path = format!("{OWN}/{}", id(&made));
    let read = server.get(&path).await;
    assert!(!read.text.contains("secret 0"), "{read:?}");
    let read = read.ok(200);
    assert_eq!(read["state"], "active");
    assert_eq!(read["secretFingerprint"], made["secretFingerprint"]);
    let listed = server.get(OWN).await.ok(200);
    assert_eq!(listed, json!({"webhooks": [read]}));
    let log = server.get(&format!("{path}/deliveries")).await.ok(200);
    let delivery = &log["deliveries"][0];
    assert_eq!(delivery["runId"], run);
    assert_eq!(delivery["type"], "run.completed");
    assert_eq!(delivery["state"], "delivered");
    assert_eq!(delivery["outcome"], "answered 200");

    let again = server
        .post(&format!("{path}/deliveries/1/redeliver"), json!({}))
        .await;
    assert_eq!(again.ok(202)["state"], "pending");
    server.advance(0).await;
    assert_eq!(server.webhook_sender.taken.lock().len(), 2);
    for unknown in ["9", "x"] {
        let path = format!("{path}/deliveries/{unknown}/redeliver");
        let reply = server.post(&path, json!({})).await;
        assert_eq!(reply.status.as_u16(), 404);
    }

    let path = format!("{HOOKS}/{}", id(&made));
    let gone = delete(&server, &server.key, &path).await;
    assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    delete(&server, &server.key, &path)
        .await
        .refused(404, "subscription_not_found");
    server.create("flow").await;
    server.advance(0).await;
    assert_eq!(server.webhook_sender.taken.lock().len(), 2);
}

#[tokio::test]
async fn invalid_registration_is_refused_with_its_path() {
    let server = TestServer::new().await;
    let changed = |name: &str, value: Value| {
        let mut body = new_webhook();
        body[name] = value;
        body
    };
    let table = [
        (json!({}), ""),
        (json!({"events": ["run.completed"]}), ""),
        (json!({"url": "https://example.com/"}), ""),
        (changed("url", json!(7)), "/url"),
        (changed("url", json!("")), "/url"),
        (changed("url", json!("x".repeat(2049))), "/url"),
        (changed("events", json!([])), "/events"),
        (changed("events", json!("run.completed")), "/events"),
        (
            changed("events", json!(["run.completed", "*"])),
            "/events/1",
        ),
        (changed("events", json!(vec!["a.b"; 101])), "/events"),
        (changed("tags", json!([""])), "/tags/0"),
        (changed("tags", json!(vec!["t"; 101])), "/tags"),
        (changed("secret", json!("mine")), ""),
        (changed("surprise", json!(1)), ""),
    ];
    for (body, path) in table {
        let reply = server.post(HOOKS, body.clone()).await;
        let details = reply.refused(400, "validation_error");
        let named = details["errors"][0]["path"].as_str().unwrap();
        assert!(named.starts_with(path), "{body}: {details}");
    }
    let inside = changed("url", json!("https://10.0.0.1/"));
    let details = server.post(HOOKS, inside).await;
    let details = details.refused(400, "webhook_url_rejected");
    assert_eq!(details["reason"], "it leads inside");
    let alias = json!({"url": "https://example.com/", "eventTypes": ["run.failed"]});
    let made = server.post(HOOKS, alias).await.ok(201);
    assert_eq!(made["events"], json!(["run.failed"]));
}

#[tokio::test]
async fn webhooks_are_isolated_between_tenants_and_workspaces() {
    let server = TestServer::new().await;
    let mut own = new_webhook();
    own["tenantId"] = json!("default");
    let made = server.post(HOOKS, own).await.ok(201);
    let mut foreign = new_webhook();
    foreign["tenantId"] = json!("tenant2");
    server
        .post(HOOKS, foreign)
        .await
        .refused(403, "tenant_membership_required");
    let path = format!("{HOOKS}/{}?tenantId=tenant2", id(&made));
    delete(&server, &server.key, &path)
        .await
        .refused(403, "tenant_membership_required");

    let other = server.new_key("tenant2", Scope::all()).await;
    let path = format!("{OWN}/{}", id(&made));
    for (method, path) in [
        ("GET", path.clone()),
        ("GET", format!("{path}/deliveries")),
        ("POST", format!("{path}:rotate")),
        ("POST", format!("{path}/deliveries/1/redeliver")),
        ("DELETE", format!("{HOOKS}/{}", id(&made))),
    ] {
        let reply = server.call_as(&other, method, &path, &[], "").await;
        reply.refused(404, "subscription_not_found");
    }
    let listed = server.call_as(&other, "GET", OWN, &[], "").await;
    assert_eq!(listed.ok(200), json!({"webhooks": []}));

    let mut bound = NewKey::new("w", "default".into(), Scope::all().iter().copied());
    bound.workspace = Some("w1".into());
    let bound = server.mint(bound).await;
    let mut body = new_webhook();
    body["tenantId"] = json!("w1");
    let reply = server
        .call_as(&bound, "POST", HOOKS, &[], body.to_string())
        .await;
    let in_workspace = reply.ok(201);
    assert_eq!(in_workspace["tenantId"], "w1");
    let reply = server.call_as(&bound, "GET", &path, &[], "").await;
    reply.refused(404, "subscription_not_found");
    server.start("flow", &[noop("a")]).await;
    server.advance(0).await;
    let delivered: Vec<_> = server.webhook_sender.taken.lock().clone();
    assert_eq!(
        delivered.len(),
        1,
        "not a run of the workspace: {delivered:?}"
    );

    let weak = server.new_key("default", &[Scope::RunsRead]).await;
    let reply = server.call_as(&weak, "POST", HOOKS, &[], "{}").await;
    let details = reply.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "webhooks:manage");
}

#[tokio::test]
async fn idempotency_key_registers_once_and_replays_the_response() {
    let server = TestServer::new().await;
    let key = [("idempotency-key", "k1")];
    let first = server.post_with(HOOKS, new_webhook(), &key).await;
    let again = server.post_with(HOOKS, new_webhook(), &key).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(first.ok(201), again.ok(201));
    let mut other = new_webhook();
    other["events"] = json!(["run.failed"]);
    server
        .post_with(HOOKS, other, &key)
        .await
        .refused(409, "idempotency_key_mismatch");
    let listed = server.get(OWN).await.ok(200);
    assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
    let path = format!("{HOOKS}/{}", id(&first.json()));
    for _ in 0..2 {
        let gone = server.call_as(&server.key, "DELETE", &path, &key, "").await;
        assert_eq!(gone.status.as_u16(), 204, "{gone:?}");
    }
}

#[tokio::test]
async fn rotation_returns_next_secret_and_its_start() {
    let server = TestServer::new().await;
    let made = server.post(HOOKS, new_webhook()).await.ok(201);
    let path = format!("{OWN}/{}", id(&made));
    let rotated = server
        .post(&format!("{path}:rotate"), json!({"overlapSeconds": 60}))
        .await
        .ok(201);
    assert_eq!(rotated["secret"], format!("secret 1 of {}", id(&made)));
    let read = server.get(&path).await.ok(200);
    assert_eq!(read["signsFrom"], rotated["signsFrom"]);
    assert_eq!(read["secretFingerprint"], rotated["secretFingerprint"]);
    server.advance(61).await;
    assert!(server.get(&path).await.ok(200).get("signsFrom").is_none());
    server
        .post(
            &format!("{path}:rotate"),
            json!({"overlapSeconds": 604_801}),
        )
        .await
        .refused(400, "validation_error");
    let now = server
        .post(&format!("{path}:rotate"), json!({"overlapSeconds": 0}))
        .await
        .ok(201);
    assert_eq!(now["secret"], format!("secret 2 of {}", id(&made)));
}

#[tokio::test]
async fn fourth_secret_waits_until_an_overlap_ends() {
    let server = TestServer::new().await;
    let made = server.post(HOOKS, new_webhook()).await.ok(201);
    let path = format!("{OWN}/{}", id(&made));
    let rotate = async |seconds: u64| {
        let body = json!({"overlapSeconds": seconds});
        server.post(&format!("{path}:rotate"), body).await
    };
    let first = rotate(600).await.ok(201);
    let second = rotate(60).await.ok(201);
    assert_eq!(
        second["signsFrom"], first["signsFrom"],
        "the oldest secret signs as long as was promised"
    );
    let read = server.get(&path).await.ok(200);
    assert_eq!(read["signsFrom"], second["signsFrom"]);
    let refused = rotate(60).await;
    assert!(refused.text.contains("overlapSeconds 0"), "{refused:?}");
    let details = refused.refused(409, "conflict");
    assert!(details["nextRotationAt"].as_str() < first["signsFrom"].as_str());
    server.advance(61).await;
    rotate(60).await.ok(201);
    rotate(60).await.refused(409, "conflict");
    // For a secret that leaked: no old secret signs any more.
    let last = rotate(0).await.ok(201);
    assert_eq!(last["secret"], format!("secret 4 of {}", id(&made)));
    assert!(server.get(&path).await.ok(200).get("signsFrom").is_none());
}

#[tokio::test]
async fn console_shows_deliveries_and_redelivers() {
    let server = TestServer::new().await;
    let cookie = sign_in(&server).await;
    let empty = page(&server, &cookie, "/console/webhooks").await;
    assert!(empty.text.contains("There are no webhooks"), "{empty:?}");
    let made = server.post(HOOKS, new_webhook()).await.ok(201);
    let run = server.start("flow", &[noop("a")]).await;
    server.advance(0).await;
    let listed = page(&server, &cookie, "/console/webhooks").await;
    assert!(listed.text.contains(id(&made)), "{listed:?}");
    let path = format!("/console/webhooks/{}", id(&made));
    let shown = page(&server, &cookie, &path).await;
    for text in [&run, "answered 200", "delivered", "run.completed"] {
        assert!(shown.text.contains(text), "{text}: {shown:?}");
    }
    assert!(!shown.text.contains("secret 0 of"));
    let form = format!("csrf={}", csrf(&shown.text));
    let headers = [("cookie", cookie.as_str())];
    let again = format!("{path}/deliveries/1");
    let sent = server.call_as("", "POST", &again, &headers, form).await;
    assert_eq!(sent.header("location"), path);
    server.advance(0).await;
    assert_eq!(server.webhook_sender.taken.lock().len(), 2);
    let missing = page(&server, &cookie, "/console/webhooks/wh-nobody").await;
    assert_eq!(missing.status.as_u16(), 404);
}

#[tokio::test]
async fn discovery_offers_webhooks() {
    let server = TestServer::new().await;
    let path = "/.well-known/openwop";
    let document = server.get(path).await.ok(200);
    let expected = json!({"supported": true, "signatureAlgorithms": ["v1"], "durable": false});
    assert_eq!(document["webhooks"], expected);
}

#[tokio::test]
async fn registration_needs_runs_read_scope() {
    let server = TestServer::new().await;
    let manager = server.new_key("default", &[Scope::WebhooksManage]).await;
    let body = new_webhook().to_string();
    let reply = server.call_as(&manager, "POST", HOOKS, &[], body).await;
    let details = reply.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:read");
    assert!(details["hint"].as_str().unwrap().contains("runs:read"));
    let listed = server.call_as(&manager, "GET", OWN, &[], "").await;
    assert_eq!(listed.ok(200), json!({"webhooks": []}));
}

#[tokio::test]
async fn delivery_stops_when_creator_loses_read_access() {
    let server = TestServer::new().await;
    let scopes = ["webhooks:manage", "runs:read", "approvals:respond"];
    let maker = json!({"name": "m", "scopes": scopes});
    let maker = server.post("/v1/host/tandem/keys", maker).await.ok(201);
    let secret = maker["secret"].as_str().unwrap();
    let made = server.call_as(secret, "POST", HOOKS, &[], new_webhook().to_string());
    let made = made.await.ok(201);
    let path = format!("{OWN}/{}", id(&made));
    let delivered_count = async || {
        server.create("flow").await;
        server.advance(0).await;
        server.webhook_sender.taken.lock().len()
    };
    server.register("flow", &[noop("a")]).await;
    assert_eq!(delivered_count().await, 1);
    // A rotated key has the same principal, so the webhook continues.
    let key = format!("/v1/host/tandem/keys/{}", maker["keyId"].as_str().unwrap());
    let second = server
        .post(&format!("{key}:rotate"), json!({}))
        .await
        .ok(201);
    delete(&server, &server.key, &key).await;
    assert_eq!(delivered_count().await, 2);
    assert_eq!(server.get(&path).await.ok(200)["suspended"], false);
    let key = format!("/v1/host/tandem/keys/{}", second["keyId"].as_str().unwrap());
    delete(&server, &server.key, &key).await;
    assert_eq!(delivered_count().await, 2, "nothing more");
    assert_eq!(server.get(&path).await.ok(200)["suspended"], true);
    let log = server.get(&format!("{path}/deliveries")).await.ok(200);
    assert_eq!(log["deliveries"][0]["state"], "dead-lettered");
    let why = log["deliveries"][0]["outcome"].as_str().unwrap();
    assert!(why.contains("may not read"), "{why}");
    // With a new key of that principal it can be redelivered.
    let again = json!({"name": "m", "scopes": scopes, "principal": maker["principal"]});
    server.post("/v1/host/tandem/keys", again).await.ok(201);
    let resend = format!("{path}/deliveries/3/redeliver");
    server.post(&resend, json!({})).await.ok(202);
    server.advance(0).await;
    assert_eq!(server.webhook_sender.taken.lock().len(), 3);
}

#[tokio::test]
async fn deliveries_and_rotation_take_read_scope_or_ownership() {
    let server = TestServer::new().await;
    let made = server.post(HOOKS, new_webhook()).await.ok(201);
    let manager = server.new_key("default", &[Scope::WebhooksManage]).await;
    let log = format!("{OWN}/{}/deliveries", id(&made));
    let rotate = format!("{OWN}/{}:rotate", id(&made));
    for (method, path) in [("GET", &log), ("POST", &rotate)] {
        let refused = server.call_as(&manager, method, path, &[], "").await;
        let details = refused.refused(403, "forbidden");
        assert_eq!(details["scopeRequired"], "runs:read");
    }
    let reader = server
        .new_key("default", &[Scope::WebhooksManage, Scope::RunsRead])
        .await;
    let mut own = NewKey::new("own", "default".into(), [Scope::WebhooksManage]);
    own.principal = Some(server.identity().await.principal);
    let owner = server.mint(own).await;
    for key in [&reader, &owner] {
        server.call_as(key, "GET", &log, &[], "").await.ok(200);
        server.call_as(key, "POST", &rotate, &[], "").await.ok(201);
    }
}

#[tokio::test]
async fn secret_is_repeated_to_the_same_principal_only() {
    let server = TestServer::new().await;
    let scopes = [Scope::WebhooksManage, Scope::RunsRead];
    let (ana, ben) = (
        server.new_key("default", &scopes).await,
        server.new_key("default", &scopes).await,
    );
    let key = [("idempotency-key", "one")];
    let register = async |by: &str| {
        let body = new_webhook().to_string();
        server.call_as(by, "POST", HOOKS, &key, body).await
    };
    let made = register(&ana).await.ok(201);
    assert_eq!(register(&ana).await.ok(201), made);
    let refused = register(&ben).await;
    refused.refused(409, "idempotency_key_mismatch");
    let path = format!("{OWN}/{}:rotate", id(&made));
    let rotate = async |by: &str| server.call_as(by, "POST", &path, &key, "").await;
    let rotated = rotate(&ana).await.ok(201);
    assert_eq!(rotate(&ana).await.ok(201), rotated);
    let refused = rotate(&ben).await;
    refused.refused(409, "idempotency_key_mismatch");
}
