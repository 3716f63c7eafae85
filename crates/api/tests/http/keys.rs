//! Keys over HTTP: a secret is shown once, and no key exceeds the permissions of its creator.

use crate::test_server::{Reply, TestServer};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

const KEYS: &str = "/v1/host/tandem/keys";

#[tokio::test]
async fn key_is_created_used_rotated_and_revoked() {
    let server = TestServer::new().await;
    let body = json!({"name": "ci", "scopes": ["runs:read"], "roles": ["finance"]});
    let made = server.post(KEYS, body).await.ok(201);
    let secret = made["secret"].as_str().unwrap();
    let path = format!("{KEYS}/{}", made["keyId"].as_str().unwrap());
    server
        .call_as(secret, "GET", "/v1/runs", &[], "")
        .await
        .ok(200);
    let listed = server.get(KEYS).await;
    assert!(!listed.text.contains(secret) && !listed.text.contains("hash"));
    assert_eq!(listed.ok(200)["keys"].as_array().unwrap().len(), 2);
    assert_eq!(server.get(&path).await.ok(200)["name"], "ci");
    let rotated = server
        .post(&format!("{path}:rotate"), json!({}))
        .await
        .ok(201);
    assert_eq!(rotated["principal"], made["principal"]);
    let gone = server.call_as(&server.key, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status.as_u16(), 200);
    server
        .call_as(secret, "GET", "/v1/runs", &[], "")
        .await
        .refused(401, "key_revoked");
    let next = rotated["secret"].as_str().unwrap();
    server
        .call_as(next, "GET", "/v1/runs", &[], "")
        .await
        .ok(200);
    server
        .post(&format!("{path}:rotate"), json!({}))
        .await
        .refused(409, "conflict");
    server
        .get(&format!("{KEYS}/nobody"))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn created_key_cannot_exceed_scopes_of_its_creator() {
    let server = TestServer::new().await;
    let weak = server
        .new_key("default", &[Scope::Keys, Scope::RunsRead])
        .await;
    let new_key = json!({"name": "x", "scopes": ["runs:read", "runs:create"]}).to_string();
    let reply = server.call_as(&weak, "POST", KEYS, &[], new_key).await;
    let details = reply.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
    // Rotating a key with more scopes would hand over its scopes.
    let strong = server.identity().await.key_id;
    let rotate = format!("{KEYS}/{strong}:rotate");
    server
        .call_as(&weak, "POST", &rotate, &[], "")
        .await
        .refused(403, "forbidden");
    let none = server.new_key("default", &[Scope::RunsRead]).await;
    server
        .call_as(&none, "GET", KEYS, &[], "")
        .await
        .refused(403, "forbidden");
    let mut test = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    test.test = true;
    let test = server.mint(test).await;
    let live = json!({"name": "x", "scopes": []}).to_string();
    server
        .call_as(&test, "POST", KEYS, &[], live)
        .await
        .refused(403, "forbidden");
    for bad in [
        json!({"name": "", "scopes": []}),
        json!({"name": "x", "scopes": ["everything"]}),
        json!({"name": "x", "scopes": [], "workspace": ""}),
        json!({"name": "x", "scopes": [], "expiresAt": "soon"}),
        json!({"name": "x", "scopes": [], "expiresAt": "2001-01-01T00:00:00Z"}),
    ] {
        server
            .post(KEYS, bad)
            .await
            .refused(400, "validation_error");
    }
}

#[tokio::test]
async fn keys_of_another_tenant_get_404() {
    let server = TestServer::new().await;
    let other = server.new_key("tenant2", Scope::all()).await;
    let id = server.identity().await.key_id;
    for (method, suffix) in [("GET", ""), ("DELETE", ""), ("POST", ":rotate")] {
        let path = format!("{KEYS}/{id}{suffix}");
        let reply = server.call_as(&other, method, &path, &[], "").await;
        reply.refused(404, "not_found");
    }
}

async fn make(server: &TestServer, key: &str, new_key: Value) -> Reply {
    server
        .call_as(key, "POST", KEYS, &[], new_key.to_string())
        .await
}

async fn revoke(server: &TestServer, by: &str, id: &str) -> Reply {
    let path = format!("{KEYS}/{id}");
    server.call_as(by, "DELETE", &path, &[], "").await
}

fn time(server: &TestServer, hours: u64) -> String {
    tandem_wire::v1::time::rfc3339(server.now().plus_ms(hours * 3_600_000))
}

#[tokio::test]
async fn created_key_cannot_outlive_its_creator() {
    let server = TestServer::new().await;
    let end = time(&server, 2);
    let short = json!({"name": "short", "scopes": ["tandem:keys"], "expiresAt": end});
    let short = make(&server, &server.key, short).await.ok(201);
    let secret = short["secret"].as_str().unwrap();
    let id = short["keyId"].as_str().unwrap();
    let longer = json!({"name": "x", "scopes": [], "expiresAt": time(&server, 3)});
    let details = make(&server, secret, longer)
        .await
        .refused(403, "forbidden");
    assert_eq!(details["latest"], end);
    let unsaid = json!({"name": "x", "scopes": []});
    let made = make(&server, secret, unsaid).await.ok(201);
    assert_eq!(made["expiresAt"], end, "not for ever");
    // Nor by rotating itself or another key.
    for target in [id, made["keyId"].as_str().unwrap()] {
        let path = format!("{KEYS}/{target}:rotate");
        let rotate = async |body: Value| {
            server
                .call_as(secret, "POST", &path, &[], body.to_string())
                .await
        };
        let longer = rotate(json!({"expiresAt": time(&server, 3)})).await;
        longer.refused(403, "forbidden");
        assert_eq!(rotate(json!({})).await.ok(201)["expiresAt"], end);
    }
    let sooner = json!({"name": "x", "scopes": [], "expiresAt": time(&server, 1)});
    make(&server, secret, sooner).await.ok(201);
}

#[tokio::test]
async fn roles_and_principals_need_authority_to_assign() {
    let server = TestServer::new().await;
    let scopes = json!(["tandem:keys", "approvals:respond"]);
    let clerk =
        json!({"name": "clerk", "scopes": scopes, "roles": ["finance"], "principal": "cleo"});
    let clerk = make(&server, &server.key, clerk).await.ok(201);
    let clerk = clerk["secret"].as_str().unwrap();
    let with = |name: &str, value: Value| {
        let mut new_key = json!({"name": "x", "scopes": ["approvals:respond"]});
        new_key[name] = value;
        new_key
    };
    make(&server, clerk, with("roles", json!(["finance"])))
        .await
        .ok(201);
    make(&server, clerk, with("principal", json!("cleo")))
        .await
        .ok(201);
    let role = make(&server, clerk, with("roles", json!(["boss"]))).await;
    assert_eq!(role.refused(403, "forbidden")["role"], "boss");
    let name = make(&server, clerk, with("principal", json!("cfo"))).await;
    name.refused(403, "forbidden");
    // Nor by rotating a key that decides as another principal.
    let cfo = json!({"name": "cfo", "scopes": ["approvals:respond"], "principal": "cfo"});
    let cfo = make(&server, &server.key, cfo).await.ok(201);
    let path = format!("{KEYS}/{}:rotate", cfo["keyId"].as_str().unwrap());
    let rotated = server.call_as(clerk, "POST", &path, &[], "{}").await;
    rotated.refused(403, "forbidden");
    // Nor by rotating any other key of somebody else: its secret would be in the answer.
    let robot = json!({"name": "ci", "scopes": ["approvals:respond"]});
    let none = json!({"name": "ci", "scopes": []});
    for robot in [robot, none] {
        let robot = make(&server, &server.key, robot).await.ok(201);
        let path = format!("{KEYS}/{}:rotate", robot["keyId"].as_str().unwrap());
        let rotated = server.call_as(clerk, "POST", &path, &[], "{}").await;
        rotated.refused(403, "forbidden");
    }
    // The scope for groups permits assigning principals, but only for the whole tenant.
    let mut bound = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    bound.workspace = Some("red".into());
    let bound = server.mint(bound).await;
    for new_key in [
        with("roles", json!(["boss"])),
        with("principal", json!("cfo")),
    ] {
        make(&server, &server.key, new_key.clone()).await.ok(201);
        make(&server, &bound, new_key)
            .await
            .refused(403, "forbidden");
    }
}

#[tokio::test]
async fn conformance_role_cannot_be_self_assigned() {
    let server = TestServer::new().await;
    let new_key = |test: bool| json!({"name": "x", "scopes": ["tandem:keys"], "roles": ["conformance"], "test": test});
    for test in [false, true] {
        let reply = make(&server, &server.key, new_key(test)).await;
        assert_eq!(reply.refused(403, "forbidden")["role"], "conformance");
    }
    let mut holder = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    holder.roles = vec!["conformance".to_owned()];
    let holder = server.mint(holder).await;
    make(&server, &holder, new_key(false)).await.ok(201);
    // Rotating a holder's key would hand it over as well.
    let keys = server.get(KEYS).await.ok(200);
    let made = keys["keys"].as_array().unwrap().iter();
    let made = made.filter(|key| key["roles"] == json!(["conformance"]));
    for key in made {
        let path = format!("{KEYS}/{}:rotate", key["keyId"].as_str().unwrap());
        server
            .post(&path, json!({}))
            .await
            .refused(403, "forbidden");
    }
}

#[tokio::test]
async fn key_with_more_scopes_cannot_be_revoked() {
    let server = TestServer::new().await;
    let scopes = [Scope::Keys, Scope::RunsRead];
    let weak = server.new_key("default", &scopes).await;
    let strong = json!({"name": "strong", "scopes": ["runs:read", "runs:create"]});
    let strong = make(&server, &server.key, strong).await.ok(201);
    let strong = strong["keyId"].as_str().unwrap();
    let details = revoke(&server, &weak, strong)
        .await
        .refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
    let equal = make(
        &server,
        &weak,
        json!({"name": "x", "scopes": ["runs:read"]}),
    )
    .await;
    let equal = equal.ok(201)["keyId"].as_str().unwrap().to_owned();
    assert_eq!(revoke(&server, &weak, &equal).await.status.as_u16(), 200);
    // Workspaces: a bound key reaches its own workspace, an unbound key all of them.
    let mut bound = NewKey::new("t", "default".into(), scopes);
    bound.workspace = Some("red".into());
    let bound = server.mint(bound).await;
    revoke(&server, &bound, strong)
        .await
        .refused(404, "not_found");
    let theirs = make(
        &server,
        &bound,
        json!({"name": "x", "scopes": ["runs:read"]}),
    )
    .await;
    let theirs = theirs.ok(201)["keyId"].as_str().unwrap().to_owned();
    assert_eq!(revoke(&server, &weak, &theirs).await.status.as_u16(), 200);
    assert_eq!(
        revoke(&server, &server.key, strong).await.status.as_u16(),
        200
    );
    // Every key may revoke itself.
    let own = server
        .keyring
        .authenticate(&weak, server.now())
        .await
        .unwrap();
    assert_eq!(
        revoke(&server, &weak, &own.key_id).await.status.as_u16(),
        200
    );
}

#[tokio::test]
async fn first_key_is_revoked_only_by_its_rotated_successor() {
    let server = TestServer::new().await;
    let first = server.identity().await.key_id.to_string();
    server.advance(1).await;
    let all: Vec<&str> = Scope::all().iter().map(|scope| scope.as_str()).collect();
    let peer = make(&server, &server.key, json!({"name": "peer", "scopes": all})).await;
    let peer = peer.ok(201)["secret"].as_str().unwrap().to_owned();
    let named = json!({"name": "x", "scopes": ["tandem:keys"], "principal": first});
    let lesser = make(&server, &server.key, named).await.ok(201);
    let lesser = lesser["secret"].as_str().unwrap();
    for (by, who) in [
        (&peer, "an equal"),
        (&lesser.to_owned(), "a lesser"),
        (&server.key, "itself"),
    ] {
        let reply = revoke(&server, by, &first).await;
        let details = reply.refused(403, "forbidden");
        assert!(
            details["hint"].as_str().unwrap().contains("Rotate"),
            "{who}"
        );
    }
    server.get("/v1/runs").await.ok(200);
    let path = format!("{KEYS}/{first}:rotate");
    let short = json!({"expiresAt": time(&server, 1)});
    let brief = server.post(&path, short).await.ok(201)["secret"].clone();
    let reply = revoke(&server, brief.as_str().unwrap(), &first).await;
    reply.refused(403, "forbidden");
    let next = server.post(&path, json!({})).await.ok(201)["secret"].clone();
    let reply = revoke(&server, next.as_str().unwrap(), &first).await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    server.get("/v1/runs").await.refused(401, "key_revoked");
}

#[tokio::test]
async fn configured_key_becomes_the_protected_key() {
    let server = TestServer::new().await;
    let now = server.now();
    let new = NewKey::new("env", "default".into(), Scope::all().iter().copied());
    let imported = server
        .keyring
        .import("a-secret-from-the-environment", new, now)
        .await;
    let configured = imported.unwrap();
    let reply = revoke(&server, &server.key, &configured.key_id).await;
    reply.refused(403, "forbidden");
    // The previously protected key is now like any other.
    let first = server.identity().await.key_id.to_string();
    let reply = revoke(&server, "a-secret-from-the-environment", &first).await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
}

#[tokio::test]
async fn maker_without_groups_scope_makes_keys_for_itself_only() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {
        "requiredApprovals": 2, "tandem": {"noSelfApproval": true}}});
    server.register("pay", &[gate]).await;
    let mut mallory = NewKey::new(
        "mallory",
        "default".into(),
        [
            Scope::Keys,
            Scope::RunsCreate,
            Scope::RunsRead,
            Scope::ApprovalsRespond,
        ],
    );
    mallory.principal = Some("mallory".into());
    let mallory = server.mint(mallory).await;
    let body = json!({"workflowId": "pay"}).to_string();
    let run = server
        .call_as(&mallory, "POST", "/v1/runs", &[], body)
        .await;
    let run = run.ok(201)["runId"].as_str().unwrap().to_owned();
    let path = format!("/v1/runs/{run}/interrupts/gate");
    let new_key = json!({"name": "second", "scopes": ["approvals:respond"]});
    let made = make(&server, &mallory, new_key).await.ok(201);
    assert_eq!(made["principal"], "mallory");
    let accept = json!({"resumeValue": {"action": "accept"}}).to_string();
    for key in [mallory.as_str(), made["secret"].as_str().unwrap()] {
        let refused = server
            .call_as(key, "POST", &path, &[], accept.clone())
            .await;
        assert_eq!(refused.status.as_u16(), 403, "{refused:?}");
    }
    // Nor by taking over a key that starts runs.
    let starter = server.new_key("default", &[Scope::RunsCreate]).await;
    let now = server.now();
    let starter = server.keyring.authenticate(&starter, now).await.unwrap();
    let path = format!("{KEYS}/{}:rotate", starter.key_id);
    let refused = server.call_as(&mallory, "POST", &path, &[], "").await;
    refused.refused(403, "forbidden");
    // Whoever decides who may decide makes new principals.
    let new_key = json!({"name": "other", "scopes": ["approvals:respond"]});
    let made = make(&server, &server.key, new_key).await.ok(201);
    assert_eq!(made["principal"], made["keyId"]);
}

#[tokio::test]
async fn repeated_request_makes_one_key_and_shows_its_secret_once() {
    let server = TestServer::new().await;
    let count = async || {
        server.get(KEYS).await.ok(200)["keys"]
            .as_array()
            .unwrap()
            .len()
    };
    let before = count().await;
    let key = [("idempotency-key", "one-key")];
    let body = json!({"name": "ci", "scopes": ["runs:read"]}).to_string();
    let send = async |by: &str, path: &str, body: &str| {
        server
            .call_as(by, "POST", path, &key, body.to_owned())
            .await
    };
    let made = send(&server.key, KEYS, &body).await.ok(201);
    let secret = made["secret"].as_str().unwrap();
    let rotate = format!("{KEYS}/{}:rotate", made["keyId"].as_str().unwrap());
    let rotated = send(&server.key, &rotate, "{}").await.ok(201);
    for (path, body, first) in [(KEYS, body.as_str(), &made), (&rotate, "{}", &rotated)] {
        let again = send(&server.key, path, body).await;
        assert_eq!(again.header("openwop-idempotent-replay"), "true");
        let again = again.ok(201);
        assert_eq!(again["keyId"], first["keyId"]);
        assert_eq!(again["secret"], Value::Null);
        assert!(again["message"].as_str().unwrap().contains("not stored"));
    }
    assert_eq!(count().await, before + 2);
    server
        .call_as(secret, "GET", "/v1/runs", &[], "")
        .await
        .ok(200);
    let other = server.new_key("default", Scope::all()).await;
    let refused = send(&other, KEYS, &body).await;
    refused.refused(409, "idempotency_key_mismatch");
}

#[tokio::test]
async fn principal_of_the_protected_key_is_named_by_itself_only() {
    let server = TestServer::new().await;
    let first = server.identity().await;
    // Fewer scopes: of keys made in one millisecond the one with the most is protected.
    let scopes = Scope::all().iter().copied().filter(|s| *s != Scope::Test);
    let admin = NewKey::new("admin", "default".into(), scopes);
    let admin = server.mint(admin).await;
    let named = json!({"name": "x", "scopes": ["runs:read"], "principal": first.principal});
    let refused = make(&server, &admin, named.clone()).await;
    refused.refused(403, "forbidden");
    let weak = make(&server, &server.key, named).await.ok(201);
    let rotate = format!("{KEYS}/{}:rotate", weak["keyId"].as_str().unwrap());
    let refused = server.call_as(&admin, "POST", &rotate, &[], "").await;
    refused.refused(403, "forbidden");
    let rotate = format!("{KEYS}/{}:rotate", first.key_id);
    let successor = server.post(&rotate, json!({})).await.ok(201);
    let successor = successor["secret"].as_str().unwrap();
    let revoked = revoke(&server, successor, &first.key_id).await;
    assert_eq!(revoked.status.as_u16(), 200);
}

#[tokio::test]
async fn new_principal_cannot_look_like_another() {
    let server = TestServer::new().await;
    let named = |name: &str| json!({"name": "x", "scopes": ["runs:read"], "principal": name});
    server.post(KEYS, named("ana")).await.ok(201);
    for (name, why) in [
        ("Ana", "looks like \\\"ana\\\""),
        ("an\u{430}", "one script"),
        ("ana\u{200b}", "invisible"),
        (" ana", "single spaces"),
    ] {
        let refused = server.post(KEYS, named(name)).await;
        assert!(refused.text.contains(why), "{name:?}: {refused:?}");
        let details = refused.refused(400, "validation_error");
        assert_eq!(details["errors"][0]["path"], "/principal");
    }
    for name in [
        "ana",
        "ana maria",
        "ana@example.com",
        "\u{430}\u{43d}\u{43d}\u{430}",
    ] {
        server.post(KEYS, named(name)).await.ok(201);
    }
}
