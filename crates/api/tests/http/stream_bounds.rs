//! Streams and polls: how many may be open, and that they end with their key or session.

use crate::console::{page, sign_in};
use crate::test_server::{Stream, TestServer, chain, hour};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_api::HttpSettings;
use tandem_app::ShareLimits;
use tandem_record::TenantId;

async fn reader_key(server: &TestServer) -> String {
    server.new_key("default", &[Scope::RunsRead]).await
}

async fn key_id(server: &TestServer, key: &str) -> String {
    let identity = server
        .keyring
        .authenticate(key, server.now())
        .await
        .unwrap();
    identity.key_id.to_string()
}

async fn revoke(server: &TestServer, key_id: &str) {
    let path = format!("/v1/host/tandem/keys/{key_id}");
    let reply = server.call_as(&server.key, "DELETE", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
}

async fn follow(server: &TestServer, key: &str, run: &str) -> Stream {
    let address = server.listen().await;
    let bearer = format!("Bearer {key}");
    let path = format!("/v1/runs/{run}/events?streamMode=debug");
    Stream::open(address, &path, &[("authorization", &bearer)]).await
}

/// Reads to the end; returns whether the stream gave the reason.
async fn ends_with_reason(stream: &mut Stream) -> bool {
    let mut has_reason = false;
    while let Some(line) = stream.line().await {
        has_reason |= line == ":the key or session of this stream has ended";
    }
    has_reason
}

#[tokio::test]
async fn revoked_key_ends_only_its_own_streams() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let key = reader_key(&server).await;
    let id = key_id(&server, &key).await;
    let mut theirs = follow(&server, &key, &run).await;
    let mut ours = follow(&server, &server.key, &run).await;
    theirs.next().await.unwrap();
    ours.next().await.unwrap();
    revoke(&server, &id).await;
    assert!(ends_with_reason(&mut theirs).await, "it says why");
    let path = format!("/v1/runs/{run}/events");
    let again = server.call_as(&key, "GET", &path, &[], "").await;
    again.refused(401, "key_revoked");
    server.advance(3601).await;
    let rest = ours.rest().await;
    assert_eq!(rest.last().unwrap().event, "run.completed");
}

#[tokio::test]
async fn stream_ends_when_its_key_expires() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let key = server
        .mint(NewKey {
            expires_at: Some(server.now().plus_ms(500)),
            ..NewKey::new("short", TenantId::new("default"), [Scope::RunsRead])
        })
        .await;
    let mut stream = follow(&server, &key, &run).await;
    stream.next().await.unwrap();
    assert!(ends_with_reason(&mut stream).await, "it says why");
    let path = format!("/v1/runs/{run}/events");
    let again = server.call_as(&key, "GET", &path, &[], "").await;
    again.refused(401, "key_expired");
}

#[tokio::test]
async fn waiting_poll_gets_401_when_its_key_is_revoked() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let key = reader_key(&server).await;
    let id = key_id(&server, &key).await;
    let head = server.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={head}&timeout=60");
    let (polled, ()) = tokio::join!(server.call_as(&key, "GET", &path, &[], ""), async {
        revoke(&server, &id).await;
    });
    polled.refused(401, "key_revoked");
}

#[tokio::test]
async fn a_revoked_key_ends_the_streams_of_its_sessions() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let cookie = sign_in(&server).await;
    let address = server.listen().await;
    let headers = [("cookie", cookie.as_str())];
    let mut streams = Vec::new();
    for path in [
        format!("/console/runs/{run}/live"),
        "/console/runs/live".to_owned(),
        "/console/inbox/live".to_owned(),
    ] {
        let mut stream = Stream::open(address, &path, &headers).await;
        assert!(stream.head[0].contains("200"), "{path}: {:?}", stream.head);
        stream.next().await.unwrap();
        streams.push((path, stream));
    }
    let own = key_id(&server, &server.key).await;
    let now = server.now();
    let by = server.identity().await.actor();
    let tenant = TenantId::new("default");
    // Revoked like its route does it; over HTTP the key could not be used for the next request.
    server
        .keyring
        .revoke(&tenant, &own, &by, now)
        .await
        .unwrap();
    server.sessions.close_for_key(&own);
    for (path, stream) in &mut streams {
        assert!(ends_with_reason(stream).await, "{path}");
    }
    let again = page(&server, &cookie, "/console/runs").await;
    assert_eq!(again.header("location"), "/console/login");
}

#[tokio::test]
async fn login_link_of_revoked_key_is_rejected() {
    let server = TestServer::new().await;
    let key = reader_key(&server).await;
    let identity = server
        .keyring
        .authenticate(&key, server.now())
        .await
        .unwrap();
    let id = identity.key_id.to_string();
    let code = server.codes.mint(identity, server.now());
    revoke(&server, &id).await;
    let path = format!("/console/login?code={}", code.expose());
    let reply = server.call_as("", "GET", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 401);
}

fn streams(total: usize, max_per_key: usize) -> HttpSettings {
    HttpSettings {
        streams: ShareLimits {
            total,
            max_per_tenant: total,
            max_per_key,
        },
        ..HttpSettings::default()
    }
}

#[tokio::test]
async fn streams_are_limited_per_key() {
    let server = TestServer::with_settings(streams(100, 2)).await;
    let run = server.start("w", &[hour("a")]).await;
    let path = format!("/v1/runs/{run}/events");
    let (first, second) = (reader_key(&server).await, reader_key(&server).await);
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = follow(&server, &first, &run).await;
        stream.next().await.unwrap();
        open.push(stream);
    }
    let refused = server.call_as(&first, "GET", &path, &[], "").await;
    let details = refused.refused(429, "rate_limited");
    assert_eq!(
        (&details["scope"], &details["limit"]),
        (&"key".into(), &2.into())
    );
    assert!(!refused.header("retry-after").is_empty());
    // A waiting poll counts as well; one that returns at once does not.
    let head = server.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let waiting = format!("{path}/poll?lastSequence={head}&timeout=1");
    let poll = server.call_as(&first, "GET", &waiting, &[], "").await;
    poll.refused(429, "rate_limited");
    let poll_path = format!("{path}/poll?lastSequence=0&timeout=1");
    server
        .call_as(&first, "GET", &poll_path, &[], "")
        .await
        .ok(200);

    let mut other = follow(&server, &second, &run).await;
    other.next().await.expect("another key is served");
    // A closed connection frees its place.
    drop(open);
    let mut again = reopened(&server, &first, &run).await;
    again.next().await.unwrap();
}

#[tokio::test]
async fn streams_of_many_keys_of_one_tenant_leave_room_for_other_tenants() {
    let server = TestServer::with_settings(streams(8, 8)).await;
    let run = server.start("w", &[hour("a")]).await;
    let path = format!("/v1/runs/{run}/events");
    let mut open = Vec::new();
    let mut refusals = Vec::new();
    for _ in 0..4 {
        let key = reader_key(&server).await;
        loop {
            let stream = follow(&server, &key, &run).await;
            if !stream.head[0].contains("200") {
                break;
            }
            open.push(stream);
        }
        let refused = server.call_as(&key, "GET", &path, &[], "").await;
        refusals.push(refused.refused(429, "rate_limited")["scope"].clone());
    }
    assert_eq!(open.len(), 4, "half of all");
    assert_eq!(refusals, ["key", "key", "tenant", "tenant"]);
    let scopes = [Scope::Workflows, Scope::RunsCreate, Scope::RunsRead];
    let other = server.new_key("tenant2", &scopes).await;
    let call = async |method: &str, path: &str, body: Value| {
        let body = body.to_string();
        let reply = server.call_as(&other, method, path, &[], body).await;
        reply.ok(201)
    };
    let document = chain("theirs", &[hour("a")]);
    call("PUT", "/v1/host/tandem/workflows/theirs", document).await;
    let created = call("POST", "/v1/runs", json!({"workflowId": "theirs"})).await;
    let mut stream = follow(&server, &other, created["runId"].as_str().unwrap()).await;
    stream.next().await.expect("another tenant is served");
}

/// The host notices a disconnected reader with a short delay.
async fn reopened(server: &TestServer, key: &str, run: &str) -> Stream {
    loop {
        let stream = follow(server, key, run).await;
        if stream.head[0].contains("200") {
            return stream;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn responses_carry_cache_control_and_nosniff() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    for (path, cache_control) in [
        ("/v1/runs/none".to_owned(), "no-store"),
        (format!("/v1/runs/{run}"), "no-store"),
        ("/v1/openapi.json".to_owned(), "no-store"),
        ("/nowhere".to_owned(), "no-store"),
        ("/healthz".to_owned(), "no-store"),
        ("/.well-known/openwop".to_owned(), "private, max-age=300"),
    ] {
        let reply = server.get(&path).await;
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("cache-control"), cache_control, "{path}");
    }
    let stream = follow(&server, &server.key, &run).await;
    for line in ["cache-control: no-cache", "x-content-type-options: nosniff"] {
        assert!(stream.head.iter().any(|head| head == line), "{line}");
    }
}
