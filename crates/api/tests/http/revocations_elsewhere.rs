//! A key that one process revokes ends in the other process too: its requests, streams, polls and sessions.

use crate::console::{page, sign_in};
use crate::test_server::{Stream, TestServer, hour};
use tandem_access::Scope;

async fn revoke(server: &TestServer, secret: &str) {
    let now = server.now();
    let identity = server.keyring.authenticate(secret, now).await.unwrap();
    let path = format!("/v1/host/tandem/keys/{}", identity.key_id);
    let reply = server.call_as(&server.key, "DELETE", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
}

/// Reads to the end; returns whether the stream gave the reason.
async fn ends_with_reason(stream: &mut Stream) -> bool {
    let mut has_reason = false;
    while let Some(line) = stream.line().await {
        has_reason |= line == ":the key or session of this stream has ended";
    }
    has_reason
}

async fn follow(server: &TestServer, path: &str, header: (&str, &str)) -> Stream {
    let address = server.listen().await;
    let mut stream = Stream::open(address, path, &[header]).await;
    assert!(stream.head[0].contains("200"), "{:?}", stream.head);
    stream.next().await.expect("a first frame");
    stream
}

#[tokio::test(start_paused = true)]
async fn stream_in_another_process_ends_when_its_key_is_revoked() {
    let [one, other] = TestServer::pair().await;
    let run = other.start("w", &[hour("a")]).await;
    let revoked = other.new_key("default", &[Scope::RunsRead]).await;
    let kept = other.new_key("default", &[Scope::RunsRead]).await;
    let path = format!("/v1/runs/{run}/events?streamMode=debug");
    let bearer = |key: &str| format!("Bearer {key}");
    let mut theirs = follow(&other, &path, ("authorization", &bearer(&revoked))).await;
    let mut ours = follow(&other, &path, ("authorization", &bearer(&kept))).await;
    revoke(&one, &revoked).await;
    assert!(ends_with_reason(&mut theirs).await, "it says why");
    let again = other.call_as(&revoked, "GET", &path, &[], "").await;
    again.refused(401, "key_revoked");
    other.advance(3601).await;
    let rest = ours.rest().await;
    assert_eq!(rest.last().unwrap().event, "run.completed");
}

#[tokio::test(start_paused = true)]
async fn waiting_poll_in_another_process_ends_when_its_key_is_revoked() {
    let [one, other] = TestServer::pair().await;
    let run = other.start("w", &[hour("a")]).await;
    let key = other.new_key("default", &[Scope::RunsRead]).await;
    let head = other.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={head}&timeout=60");
    let (polled, ()) = tokio::join!(other.call_as(&key, "GET", &path, &[], ""), async {
        revoke(&one, &key).await;
    });
    polled.refused(401, "key_revoked");
}

#[tokio::test(start_paused = true)]
async fn session_and_login_code_in_another_process_end_when_their_key_is_revoked() {
    let [one, other] = TestServer::pair().await;
    let run = other.start("w", &[hour("a")]).await;
    let cookie = sign_in(&other).await;
    let identity = other.identity().await;
    let code = other.codes.mint(identity, other.now());
    let live = format!("/console/runs/{run}/live");
    let mut stream = follow(&other, &live, ("cookie", &cookie)).await;
    revoke(&one, &other.key).await;
    assert!(ends_with_reason(&mut stream).await, "it says why");
    let again = page(&other, &cookie, "/console/runs").await;
    assert_eq!(again.header("location"), "/console/login");
    let path = format!("/console/login?code={}", code.expose());
    let reply = other.call_as("", "GET", &path, &[], "").await;
    assert_eq!(reply.status.as_u16(), 401);
}
