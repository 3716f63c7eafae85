//! Streams and polls: how many there may be, and that they end with the key or session they were
//! opened with.

use crate::console::{page, sign_in};
use crate::stage::{Stage, Stream, hour};
use tandem_access::{NewKey, Scope};
use tandem_api::Settings;
use tandem_record::TenantId;

async fn reader_key(stage: &Stage) -> String {
    stage.new_key("default", &[Scope::RunsRead]).await
}

async fn key_id(stage: &Stage, key: &str) -> String {
    let identity = stage.keyring.authenticate(key, stage.now()).await.unwrap();
    identity.key_id.to_string()
}

async fn revoke(stage: &Stage, key_id: &str) {
    let path = format!("/v1/host/tandem/keys/{key_id}");
    let reply = stage.call_as(&stage.key, "DELETE", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 204, "{reply:?}");
}

async fn follow(stage: &Stage, key: &str, run: &str) -> Stream {
    let address = stage.listen().await;
    let bearer = format!("Bearer {key}");
    let path = format!("/v1/runs/{run}/events?streamMode=debug");
    Stream::open(address, &path, &[("authorization", &bearer)]).await
}

/// Reads to the end; whether the stream said why it ended.
async fn ends_with_reason(stream: &mut Stream) -> bool {
    let mut said = false;
    while let Some(line) = stream.line().await {
        said |= line == ":the key or session of this stream has ended";
    }
    said
}

#[tokio::test]
async fn a_revoked_key_ends_its_streams_and_nobody_elses() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    let key = reader_key(&stage).await;
    let id = key_id(&stage, &key).await;
    let mut theirs = follow(&stage, &key, &run).await;
    let mut ours = follow(&stage, &stage.key, &run).await;
    theirs.next().await.unwrap();
    ours.next().await.unwrap();
    revoke(&stage, &id).await;
    assert!(ends_with_reason(&mut theirs).await, "it says why");
    let path = format!("/v1/runs/{run}/events");
    let again = stage.call_as(&key, "GET", &path, &[], "").await;
    again.refused(401, "key_revoked");
    stage.advance(3601).await;
    let rest = ours.rest().await;
    assert_eq!(rest.last().unwrap().event, "run.completed");
}

#[tokio::test]
async fn a_stream_ends_when_its_key_expires() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    let key = stage
        .mint(NewKey {
            expires_at: Some(stage.now().plus_ms(500)),
            ..NewKey::new("short", TenantId::new("default"), [Scope::RunsRead])
        })
        .await;
    let mut stream = follow(&stage, &key, &run).await;
    stream.next().await.unwrap();
    assert!(ends_with_reason(&mut stream).await, "it says why");
    let path = format!("/v1/runs/{run}/events");
    let again = stage.call_as(&key, "GET", &path, &[], "").await;
    again.refused(401, "key_expired");
}

#[tokio::test]
async fn a_poll_that_waits_is_refused_when_its_key_is_revoked() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    let key = reader_key(&stage).await;
    let id = key_id(&stage, &key).await;
    let head = stage.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={head}&timeout=60");
    let (polled, ()) = tokio::join!(stage.call_as(&key, "GET", &path, &[], ""), async {
        revoke(&stage, &id).await;
    });
    polled.refused(401, "key_revoked");
}

#[tokio::test]
async fn a_revoked_key_ends_the_streams_of_its_sessions() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    let cookie = sign_in(&stage).await;
    let address = stage.listen().await;
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
    let own = key_id(&stage, &stage.key).await;
    let now = stage.now();
    let by = stage.identity().await.actor();
    let tenant = TenantId::new("default");
    // As its route does, which a key cannot be used for on itself and then be asked again.
    stage.keyring.revoke(&tenant, &own, &by, now).await.unwrap();
    stage.sessions.close_of_key(&own);
    for (path, stream) in &mut streams {
        assert!(ends_with_reason(stream).await, "{path}");
    }
    let again = page(&stage, &cookie, "/console/runs").await;
    assert_eq!(again.header("location"), "/console/login");
}

#[tokio::test]
async fn a_printed_link_of_a_revoked_key_signs_nobody_in() {
    let stage = Stage::new().await;
    let key = reader_key(&stage).await;
    let identity = stage.keyring.authenticate(&key, stage.now()).await.unwrap();
    let id = identity.key_id.to_string();
    let code = stage.codes.mint(identity, stage.now());
    revoke(&stage, &id).await;
    let path = format!("/console/login?code={}", code.expose());
    let reply = stage.call_as("", "GET", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 401);
}

#[tokio::test]
async fn one_key_holds_so_many_streams_and_the_host_so_many() {
    let stage = Stage::with(Settings {
        max_streams_per_key: 2,
        max_streams: 3,
        ..Settings::default()
    })
    .await;
    let run = stage.start("w", &[hour("a")]).await;
    let path = format!("/v1/runs/{run}/events");
    let (first, second) = (reader_key(&stage).await, reader_key(&stage).await);
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = follow(&stage, &first, &run).await;
        stream.next().await.unwrap();
        open.push(stream);
    }
    let refused = stage.call_as(&first, "GET", &path, &[], "").await;
    let details = refused.refused(429, "rate_limited");
    assert_eq!(
        (&details["scope"], &details["limit"]),
        (&"key".into(), &2.into())
    );
    assert!(!refused.header("retry-after").is_empty());
    // A poll that waits counts as well; one that has something to tell does not.
    let head = stage.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let waiting = format!("{path}/poll?lastSequence={head}&timeout=1");
    let poll = stage.call_as(&first, "GET", &waiting, &[], "").await;
    poll.refused(429, "rate_limited");
    let told = format!("{path}/poll?lastSequence=0&timeout=1");
    stage.call_as(&first, "GET", &told, &[], "").await.ok(200);

    let mut other = follow(&stage, &second, &run).await;
    other.next().await.expect("another key is served");
    let refused = stage.call_as(&second, "GET", &path, &[], "").await;
    let details = refused.refused(429, "rate_limited");
    assert_eq!(details["scope"], "global");
    // Who hangs up makes room.
    drop(open);
    let mut again = reopened(&stage, &first, &run).await;
    again.next().await.unwrap();
}

/// The host hears of a reader that hung up a moment later.
async fn reopened(stage: &Stage, key: &str, run: &str) -> Stream {
    loop {
        let stream = follow(stage, key, run).await;
        if stream.head[0].contains("200") {
            return stream;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn answers_are_not_kept_by_others_and_not_taken_for_something_else() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    for (path, kept) in [
        ("/v1/runs/none".to_owned(), "no-store"),
        (format!("/v1/runs/{run}"), "no-store"),
        ("/v1/openapi.json".to_owned(), "no-store"),
        ("/nowhere".to_owned(), "no-store"),
        ("/healthz".to_owned(), "no-store"),
        ("/.well-known/openwop".to_owned(), "private, max-age=300"),
    ] {
        let reply = stage.get(&path).await;
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("cache-control"), kept, "{path}");
    }
    let stream = follow(&stage, &stage.key, &run).await;
    for line in ["cache-control: no-cache", "x-content-type-options: nosniff"] {
        assert!(stream.head.iter().any(|head| head == line), "{line}");
    }
}
