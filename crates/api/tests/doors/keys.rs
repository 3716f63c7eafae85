//! Keys over HTTP: a secret once, never more power than the maker has.

use crate::stage::Stage;
use serde_json::json;
use tandem_access::{NewKey, Scope};

const KEYS: &str = "/v1/host/tandem/keys";

#[tokio::test]
async fn a_key_is_made_used_rotated_and_revoked() {
    let stage = Stage::new().await;
    let body = json!({"name": "ci", "scopes": ["runs:read"], "roles": ["finance"]});
    let made = stage.post(KEYS, body).await.ok(201);
    let secret = made["secret"].as_str().unwrap();
    let path = format!("{KEYS}/{}", made["keyId"].as_str().unwrap());
    stage
        .call_as(secret, "GET", "/v1/runs", &[], "")
        .await
        .ok(200);
    let listed = stage.get(KEYS).await;
    assert!(!listed.text.contains(secret) && !listed.text.contains("hash"));
    assert_eq!(listed.ok(200)["keys"].as_array().unwrap().len(), 2);
    assert_eq!(stage.get(&path).await.ok(200)["name"], "ci");
    let rotated = stage
        .post(&format!("{path}:rotate"), json!({}))
        .await
        .ok(201);
    assert_eq!(rotated["principal"], made["principal"]);
    let gone = stage.call_as(&stage.key, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status.as_u16(), 204);
    stage
        .call_as(secret, "GET", "/v1/runs", &[], "")
        .await
        .refused(401, "key_revoked");
    let next = rotated["secret"].as_str().unwrap();
    stage
        .call_as(next, "GET", "/v1/runs", &[], "")
        .await
        .ok(200);
    stage
        .post(&format!("{path}:rotate"), json!({}))
        .await
        .refused(409, "conflict");
    stage
        .get(&format!("{KEYS}/nobody"))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn nobody_hands_out_more_than_they_hold() {
    let stage = Stage::new().await;
    let weak = stage
        .new_key("default", &[Scope::Keys, Scope::RunsRead])
        .await;
    let wanted = json!({"name": "x", "scopes": ["runs:read", "runs:create"]}).to_string();
    let reply = stage.call_as(&weak, "POST", KEYS, &[], wanted).await;
    let details = reply.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
    // Rotating a stronger key would hand over its powers.
    let strong = stage.identity().await.key_id;
    let rotate = format!("{KEYS}/{strong}:rotate");
    stage
        .call_as(&weak, "POST", &rotate, &[], "")
        .await
        .refused(403, "forbidden");
    let none = stage.new_key("default", &[Scope::RunsRead]).await;
    stage
        .call_as(&none, "GET", KEYS, &[], "")
        .await
        .refused(403, "forbidden");
    let mut test = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    test.test = true;
    let test = stage.mint(test).await;
    let live = json!({"name": "x", "scopes": []}).to_string();
    stage
        .call_as(&test, "POST", KEYS, &[], live)
        .await
        .refused(403, "forbidden");
    for bad in [
        json!({"name": "", "scopes": []}),
        json!({"name": "x", "scopes": ["everything"]}),
        json!({"name": "x", "scopes": [], "expiresAt": "soon"}),
        json!({"name": "x", "scopes": [], "expiresAt": "2001-01-01T00:00:00Z"}),
    ] {
        stage.post(KEYS, bad).await.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn keys_of_another_tenant_do_not_exist() {
    let stage = Stage::new().await;
    let other = stage.new_key("tenant2", Scope::all()).await;
    let id = stage.identity().await.key_id;
    for (method, suffix) in [("GET", ""), ("DELETE", ""), ("POST", ":rotate")] {
        let path = format!("{KEYS}/{id}{suffix}");
        let reply = stage.call_as(&other, method, &path, &[], "").await;
        reply.refused(404, "not_found");
    }
}
