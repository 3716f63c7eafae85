//! Keys over HTTP: a secret once, never more power than the maker has.

use crate::stage::{Reply, Stage};
use serde_json::{Value, json};
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
        json!({"name": "x", "scopes": [], "workspace": ""}),
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

async fn make(stage: &Stage, key: &str, wanted: Value) -> Reply {
    stage
        .call_as(key, "POST", KEYS, &[], wanted.to_string())
        .await
}

async fn revoke(stage: &Stage, by: &str, id: &str) -> Reply {
    let path = format!("{KEYS}/{id}");
    stage.call_as(by, "DELETE", &path, &[], "").await
}

fn time(stage: &Stage, hours: u64) -> String {
    tandem_wire::v1::time::rfc3339(stage.now().plus_ms(hours * 3_600_000))
}

#[tokio::test]
async fn no_key_outlives_the_one_that_makes_it() {
    let stage = Stage::new().await;
    let end = time(&stage, 2);
    let short = json!({"name": "short", "scopes": ["tandem:keys"], "expiresAt": end});
    let short = make(&stage, &stage.key, short).await.ok(201);
    let secret = short["secret"].as_str().unwrap();
    let id = short["keyId"].as_str().unwrap();
    let longer = json!({"name": "x", "scopes": [], "expiresAt": time(&stage, 3)});
    let details = make(&stage, secret, longer).await.refused(403, "forbidden");
    assert_eq!(details["latest"], end);
    let unsaid = json!({"name": "x", "scopes": []});
    let made = make(&stage, secret, unsaid).await.ok(201);
    assert_eq!(made["expiresAt"], end, "not for ever");
    // Nor by rotating itself, or another.
    for target in [id, made["keyId"].as_str().unwrap()] {
        let path = format!("{KEYS}/{target}:rotate");
        let rotate = async |body: Value| {
            stage
                .call_as(secret, "POST", &path, &[], body.to_string())
                .await
        };
        let longer = rotate(json!({"expiresAt": time(&stage, 3)})).await;
        longer.refused(403, "forbidden");
        assert_eq!(rotate(json!({})).await.ok(201)["expiresAt"], end);
    }
    let sooner = json!({"name": "x", "scopes": [], "expiresAt": time(&stage, 1)});
    make(&stage, secret, sooner).await.ok(201);
}

#[tokio::test]
async fn roles_and_names_are_given_by_those_who_have_a_say_over_them() {
    let stage = Stage::new().await;
    let scopes = json!(["tandem:keys", "approvals:respond"]);
    let clerk =
        json!({"name": "clerk", "scopes": scopes, "roles": ["finance"], "principal": "cleo"});
    let clerk = make(&stage, &stage.key, clerk).await.ok(201);
    let clerk = clerk["secret"].as_str().unwrap();
    let with = |name: &str, value: Value| {
        let mut wanted = json!({"name": "x", "scopes": ["approvals:respond"]});
        wanted[name] = value;
        wanted
    };
    make(&stage, clerk, with("roles", json!(["finance"])))
        .await
        .ok(201);
    make(&stage, clerk, with("principal", json!("cleo")))
        .await
        .ok(201);
    let role = make(&stage, clerk, with("roles", json!(["boss"]))).await;
    assert_eq!(role.refused(403, "forbidden")["role"], "boss");
    let name = make(&stage, clerk, with("principal", json!("cfo"))).await;
    name.refused(403, "forbidden");
    // Nor by rotating a key that decides as somebody else.
    let cfo = json!({"name": "cfo", "scopes": ["approvals:respond"], "principal": "cfo"});
    let cfo = make(&stage, &stage.key, cfo).await.ok(201);
    let path = format!("{KEYS}/{}:rotate", cfo["keyId"].as_str().unwrap());
    let rotated = stage.call_as(clerk, "POST", &path, &[], "{}").await;
    rotated.refused(403, "forbidden");
    // One that decides nothing may be rotated by whoever administers keys.
    let robot = json!({"name": "ci", "scopes": []});
    let robot = make(&stage, &stage.key, robot).await.ok(201);
    let path = format!("{KEYS}/{}:rotate", robot["keyId"].as_str().unwrap());
    stage.call_as(clerk, "POST", &path, &[], "{}").await.ok(201);
    // The scope for groups is a say over people, in the whole tenant only.
    let mut bound = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    bound.workspace = Some("red".into());
    let bound = stage.mint(bound).await;
    for wanted in [
        with("roles", json!(["boss"])),
        with("principal", json!("cfo")),
    ] {
        make(&stage, &stage.key, wanted.clone()).await.ok(201);
        make(&stage, &bound, wanted).await.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn nobody_gives_themselves_the_role_of_the_conformance_suite() {
    let stage = Stage::new().await;
    let wanted = |test: bool| json!({"name": "x", "scopes": ["tandem:keys"], "roles": ["conformance"], "test": test});
    for test in [false, true] {
        let reply = make(&stage, &stage.key, wanted(test)).await;
        assert_eq!(reply.refused(403, "forbidden")["role"], "conformance");
    }
    let mut holder = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    holder.roles = vec!["conformance".to_owned()];
    let holder = stage.mint(holder).await;
    make(&stage, &holder, wanted(false)).await.ok(201);
    // Rotating a holder's key would hand it over as well.
    let keys = stage.get(KEYS).await.ok(200);
    let made = keys["keys"].as_array().unwrap().iter();
    let made = made.filter(|key| key["roles"] == json!(["conformance"]));
    for key in made {
        let path = format!("{KEYS}/{}:rotate", key["keyId"].as_str().unwrap());
        stage.post(&path, json!({})).await.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn nobody_revokes_a_key_above_them() {
    let stage = Stage::new().await;
    let scopes = [Scope::Keys, Scope::RunsRead];
    let weak = stage.new_key("default", &scopes).await;
    let strong = json!({"name": "strong", "scopes": ["runs:read", "runs:create"]});
    let strong = make(&stage, &stage.key, strong).await.ok(201);
    let strong = strong["keyId"].as_str().unwrap();
    let details = revoke(&stage, &weak, strong)
        .await
        .refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
    let equal = make(&stage, &weak, json!({"name": "x", "scopes": ["runs:read"]})).await;
    let equal = equal.ok(201)["keyId"].as_str().unwrap().to_owned();
    assert_eq!(revoke(&stage, &weak, &equal).await.status.as_u16(), 204);
    // Workspaces: a bound key reaches its own, a key of the tenant all of them.
    let mut bound = NewKey::new("t", "default".into(), scopes);
    bound.workspace = Some("red".into());
    let bound = stage.mint(bound).await;
    revoke(&stage, &bound, strong)
        .await
        .refused(404, "not_found");
    let theirs = make(
        &stage,
        &bound,
        json!({"name": "x", "scopes": ["runs:read"]}),
    )
    .await;
    let theirs = theirs.ok(201)["keyId"].as_str().unwrap().to_owned();
    assert_eq!(revoke(&stage, &weak, &theirs).await.status.as_u16(), 204);
    assert_eq!(
        revoke(&stage, &stage.key, strong).await.status.as_u16(),
        204
    );
    // Everybody may give up their own.
    let own = stage
        .keyring
        .authenticate(&weak, stage.now())
        .await
        .unwrap();
    assert_eq!(
        revoke(&stage, &weak, &own.key_id).await.status.as_u16(),
        204
    );
}

#[tokio::test]
async fn the_first_key_is_taken_away_by_its_own_successor_only() {
    let stage = Stage::new().await;
    let first = stage.identity().await.key_id.to_string();
    stage.advance(1).await;
    let all: Vec<&str> = Scope::all().iter().map(|scope| scope.as_str()).collect();
    let peer = make(&stage, &stage.key, json!({"name": "peer", "scopes": all})).await;
    let peer = peer.ok(201)["secret"].as_str().unwrap().to_owned();
    let named = json!({"name": "x", "scopes": ["tandem:keys"], "principal": first});
    let lesser = make(&stage, &stage.key, named).await.ok(201);
    let lesser = lesser["secret"].as_str().unwrap();
    for (by, who) in [
        (&peer, "an equal"),
        (&lesser.to_owned(), "a lesser"),
        (&stage.key, "itself"),
    ] {
        let reply = revoke(&stage, by, &first).await;
        let details = reply.refused(403, "forbidden");
        assert!(
            details["hint"].as_str().unwrap().contains("Rotate"),
            "{who}"
        );
    }
    stage.get("/v1/runs").await.ok(200);
    let path = format!("{KEYS}/{first}:rotate");
    let short = json!({"expiresAt": time(&stage, 1)});
    let brief = stage.post(&path, short).await.ok(201)["secret"].clone();
    let reply = revoke(&stage, brief.as_str().unwrap(), &first).await;
    reply.refused(403, "forbidden");
    let next = stage.post(&path, json!({})).await.ok(201)["secret"].clone();
    let reply = revoke(&stage, next.as_str().unwrap(), &first).await;
    assert_eq!(reply.status.as_u16(), 204, "{reply:?}");
    stage.get("/v1/runs").await.refused(401, "key_revoked");
}

#[tokio::test]
async fn a_configured_key_stands_above_older_ones() {
    let stage = Stage::new().await;
    let now = stage.now();
    let new = NewKey::new("env", "default".into(), Scope::all().iter().copied());
    let imported = stage
        .keyring
        .import("a-secret-from-the-environment", new, now)
        .await;
    let configured = imported.unwrap();
    let reply = revoke(&stage, &stage.key, &configured.key_id).await;
    reply.refused(403, "forbidden");
    // The one that was first is like any other now.
    let first = stage.identity().await.key_id.to_string();
    let reply = revoke(&stage, "a-secret-from-the-environment", &first).await;
    assert_eq!(reply.status.as_u16(), 204, "{reply:?}");
}
