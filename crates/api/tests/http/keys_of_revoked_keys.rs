//! What happens to the keys that a revoked key made.

use crate::test_server::{Reply, TestServer};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

const KEYS: &str = "/v1/host/tandem/keys";

/// A key as its maker knows it.
struct Key {
    id: String,
    secret: String,
}

impl Key {
    fn from_answer(made: &Value) -> Self {
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Self {
            id: text("keyId"),
            secret: text("secret"),
        }
    }

    async fn of(server: &TestServer, secret: &str) -> Self {
        let now = server.now();
        let identity = server.keyring.authenticate(secret, now).await.unwrap();
        Self {
            id: identity.key_id.to_string(),
            secret: secret.to_owned(),
        }
    }

    async fn make(&self, server: &TestServer) -> Self {
        let new = json!({"name": "made", "scopes": ["tandem:keys", "runs:read"]});
        let made = server.call_as(&self.secret, "POST", KEYS, &[], new.to_string());
        Self::from_answer(&made.await.ok(201))
    }

    async fn rotate(&self, server: &TestServer, key: &Self) -> Self {
        let path = format!("{KEYS}/{}:rotate", key.id);
        let rotated = server.call_as(&self.secret, "POST", &path, &[], "{}").await;
        Self::from_answer(&rotated.ok(201))
    }

    async fn revoke(&self, server: &TestServer, key: &Self, query: &str) -> Value {
        let path = format!("{KEYS}/{}{query}", key.id);
        let revoked = server.call_as(&self.secret, "DELETE", &path, &[], "").await;
        revoked.ok(200)
    }

    async fn read_runs(&self, server: &TestServer) -> Reply {
        server
            .call_as(&self.secret, "GET", "/v1/runs", &[], "")
            .await
    }

    async fn works(&self, server: &TestServer) -> bool {
        let reply = self.read_runs(server).await;
        let works = reply.status.as_u16() == 200;
        if !works {
            reply.refused(401, "key_revoked");
        }
        works
    }
}

/// The tenant's first key, and one that administers keys beside it.
async fn two_admins(server: &TestServer) -> (Key, Key) {
    let first = Key::of(server, &server.key).await;
    server.advance(1).await;
    let new = NewKey::new("admin", "default".into(), Scope::all().iter().copied());
    let admin = Key::of(server, &server.mint(new).await).await;
    (first, admin)
}

#[tokio::test]
async fn keys_end_with_the_key_that_made_them() {
    let server = TestServer::new().await;
    let (first, admin) = two_admins(&server).await;
    let child = admin.make(&server).await;
    let grandchild = child.make(&server).await;
    // A secret that was stolen may have rotated itself, and others.
    let hidden = admin.rotate(&server, &admin).await;
    let deeper = hidden.make(&server).await;
    let other = first.make(&server).await;
    let answer = first.revoke(&server, &admin, "").await;
    let also = answer["alsoRevoked"].as_array().unwrap();
    for ended in [&child, &grandchild, &hidden, &deeper] {
        assert!(also.contains(&json!(ended.id)), "{answer}");
        assert!(!ended.works(&server).await);
    }
    assert_eq!(also.len(), 4);
    assert_eq!(answer["kept"], json!([]));
    assert!(other.works(&server).await && first.works(&server).await);
    let entries = server.audit_entries().await;
    let revoked = entries
        .iter()
        .filter(|entry| entry["action"] == "key.revoked");
    let with: Vec<&Value> = revoked.map(|entry| &entry["details"]["with"]).collect();
    assert_eq!(with.len(), 5, "{entries:?}");
    assert_eq!(with.iter().filter(|with| ***with == admin.id).count(), 4);
}

#[tokio::test]
async fn successor_goes_on_with_what_a_rotated_key_made() {
    let server = TestServer::new().await;
    let (first, admin) = two_admins(&server).await;
    let child = admin.make(&server).await;
    // Whoever rotates knows the new secret: the first key, for a service.
    let service = first.make(&server).await;
    let of_service = service.make(&server).await;
    let next = first.rotate(&server, &service).await;
    let answer = first.revoke(&server, &service, "").await;
    assert_eq!(answer["alsoRevoked"], json!([]));
    assert_eq!(answer["kept"], json!([of_service.id]));
    assert!(of_service.works(&server).await && next.works(&server).await);
    // It ends with the successor.
    let answer = first.revoke(&server, &next, "").await;
    assert_eq!(answer["alsoRevoked"], json!([of_service.id]));
    assert!(!of_service.works(&server).await);
    // A key that rotates itself: the new one revokes the old.
    let renewed = admin.rotate(&server, &admin).await;
    let answer = renewed.revoke(&server, &admin, "").await;
    assert_eq!(answer["alsoRevoked"], json!([]));
    assert!(child.works(&server).await && renewed.works(&server).await);
    // Or the old one itself.
    let again = renewed.rotate(&server, &renewed).await;
    renewed.revoke(&server, &renewed, "").await;
    assert!(child.works(&server).await && again.works(&server).await);
}

#[tokio::test]
async fn caller_chooses_whether_made_keys_are_revoked() {
    let server = TestServer::new().await;
    let (first, admin) = two_admins(&server).await;
    let (one, two) = (admin.make(&server).await, admin.make(&server).await);
    let unknown = format!("{KEYS}/{}?made=burn", admin.id);
    let refused = server.call_as(&first.secret, "DELETE", &unknown, &[], "");
    refused.await.refused(400, "validation_error");
    let next = first.rotate(&server, &admin).await;
    let answer = first.revoke(&server, &admin, "?made=keep").await;
    let mut kept = vec![one.id.clone(), two.id.clone()];
    let mut shown: Vec<&str> = answer["kept"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    kept.sort();
    shown.sort_unstable();
    assert_eq!(shown, kept);
    // Again, when it is known that it leaked. What another key made of it stays.
    first.revoke(&server, &admin, "?made=revoke").await;
    assert!(!one.works(&server).await && !two.works(&server).await);
    assert!(next.works(&server).await);
}

#[tokio::test]
async fn key_is_not_ended_by_revoking_its_maker() {
    let server = TestServer::new().await;
    let (first, admin) = two_admins(&server).await;
    let made = admin.make(&server).await;
    let (own, other) = (made.make(&server).await, made.make(&server).await);
    let answer = own.revoke(&server, &made, "?made=revoke").await;
    assert_eq!(answer["alsoRevoked"], json!([other.id]));
    assert!(own.works(&server).await && first.works(&server).await);
}
