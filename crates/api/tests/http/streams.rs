//! Streams and polls: no event is missed or repeated, and the stream ends after the terminal event.

use crate::test_server::{Frame, Stream, TestServer, hour, noop};
use serde_json::{Value, json};
use std::net::SocketAddr;

async fn frames(
    server: &TestServer,
    address: SocketAddr,
    run: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> Vec<Frame> {
    open(server, address, run, query, headers)
        .await
        .rest()
        .await
}

async fn open(
    server: &TestServer,
    address: SocketAddr,
    run: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> Stream {
    let bearer = format!("Bearer {}", server.key);
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    let stream = Stream::open(address, &format!("/v1/runs/{run}/events{query}"), &all).await;
    assert!(stream.head[0].contains("200"), "{:?}", stream.head);
    stream
}

#[tokio::test]
async fn stream_of_finished_run_sends_all_events_and_closes() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[noop("a"), noop("b"), noop("c")]).await;
    let log = server.log(&run).await;
    let events = log["events"].as_array().unwrap();
    assert_eq!(
        (&log["isComplete"], &log["runStatus"]),
        (&json!(true), &json!("completed"))
    );
    assert_eq!(log["lastEventSeq"], events.len() - 1);
    let mut stream = open(&server, address, &run, "?streamMode=debug", &[]).await;
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "x-accel-buffering: no",
    ] {
        assert!(
            stream.head.iter().any(|line| line == header),
            "{:?}",
            stream.head
        );
    }
    let got = stream.rest().await;
    let data: Vec<&Value> = got.iter().map(|f| &f.data).collect();
    assert_eq!(data, events.iter().collect::<Vec<_>>());
    for frame in &got {
        assert_eq!(frame.data["sequence"], frame.id.unwrap());
        assert_eq!(frame.data["type"], frame.event);
    }
}

#[tokio::test]
async fn stream_resumes_after_last_event_id() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[noop("a"), noop("b")]).await;
    let total = server.log(&run).await["events"].as_array().unwrap().len() as u64;
    for n in [0, total / 2, total - 2] {
        for id in [n.to_string(), format!("evt-{run}-{n}")] {
            let got = frames(
                &server,
                address,
                &run,
                "?streamMode=debug",
                &[("last-event-id", &id)],
            )
            .await;
            let ids: Vec<u64> = got.iter().map(|f| f.id.unwrap()).collect();
            assert_eq!(ids, (n + 1..total).collect::<Vec<_>>());
        }
    }
    let last = (total - 1).to_string();
    let seen_all = [("last-event-id", last.as_str())];
    assert!(
        frames(&server, address, &run, "?streamMode=debug", &seen_all)
            .await
            .is_empty()
    );
    let lost = [("last-event-id", "garbage")];
    let all = frames(&server, address, &run, "?streamMode=debug", &lost).await;
    assert_eq!(all.len() as u64, total);
}

#[tokio::test]
async fn stream_follows_live_run_to_its_end() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[hour("a"), noop("b")]).await;
    let mut stream = open(&server, address, &run, "?streamMode=debug", &[]).await;
    let mut got = vec![stream.next().await.unwrap()];
    server.advance(3601).await;
    got.extend(stream.rest().await);
    let ids: Vec<u64> = got.iter().map(|f| f.id.unwrap()).collect();
    let total = server.log(&run).await["events"].as_array().unwrap().len() as u64;
    assert_eq!(ids, (0..total).collect::<Vec<_>>());
    assert_eq!(got.last().unwrap().event, "run.completed");
}

#[tokio::test]
async fn each_stream_mode_shows_its_own_events() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[noop("a"), noop("b")]).await;
    let names = |frames: &[Frame]| frames.iter().map(|f| f.event.clone()).collect::<Vec<_>>();
    let updates = names(&frames(&server, address, &run, "", &[]).await);
    assert!(updates.contains(&"node.completed".to_owned()));
    assert!(!updates.contains(&"node.started".to_owned()));
    assert_eq!(updates.last().unwrap(), "run.completed");
    let messages = frames(&server, address, &run, "?streamMode=messages", &[]).await;
    assert!(messages.is_empty());
    let values = frames(&server, address, &run, "?streamMode=values", &[]).await;
    assert!(values.iter().all(|f| f.event == "state.snapshot"));
    assert_eq!(values.last().unwrap().data["status"], "completed");
    assert_eq!(values[0].data["status"], "running");
    // A `values` stream that resumes first sends the state at its position.
    let resumed = frames(
        &server,
        address,
        &run,
        "?streamMode=values",
        &[("last-event-id", "1")],
    )
    .await;
    assert_eq!(resumed[0].id, Some(1));
    let path = format!("/v1/runs/{run}/events?streamMode=updates,telepathy");
    let details = server
        .get(&path)
        .await
        .refused(400, "unsupported_stream_mode");
    assert_eq!(
        details["supported"],
        json!(["updates", "values", "messages", "debug"])
    );
    for buffer in ["5001", "-1", "x"] {
        let path = format!("/v1/runs/{run}/events?bufferMs={buffer}");
        server.get(&path).await.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn batch_is_flushed_when_the_run_ends() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[hour("a"), noop("b")]).await;
    // The window does not close during the test.
    let mut stream = open(
        &server,
        address,
        &run,
        "?streamMode=debug&bufferMs=5000",
        &[],
    )
    .await;
    server.advance(3601).await;
    let got = stream.rest().await;
    assert!(got.iter().all(|f| f.event == "batch"));
    let batched: Vec<Value> = got
        .iter()
        .flat_map(|f| f.data.as_array().unwrap().clone())
        .collect();
    assert_eq!(json!(batched), server.log(&run).await["events"]);
    let last = got.last().unwrap();
    assert_eq!(last.id, batched.last().unwrap()["sequence"].as_u64());
}

#[tokio::test]
async fn streams_end_when_the_host_drains() {
    let server = TestServer::new().await;
    let address = server.listen().await;
    let run = server.start("w", &[hour("a")]).await;
    let mut stream = open(&server, address, &run, "?streamMode=debug", &[]).await;
    stream.next().await.unwrap();
    server.stopping.send(true).unwrap();
    stream.rest().await;
}

#[tokio::test]
async fn poll_returns_events_after_its_cursor() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a"), noop("b")]).await;
    let whole = server.log(&run).await;
    let poll = |query: &str| {
        let path = format!("/v1/runs/{run}/events/poll{query}");
        async { server.get(&{ path }).await }
    };
    assert_eq!(poll("").await.ok(200), whole);
    let rest = poll("?lastSequence=2&timeout=1").await.ok(200);
    assert_eq!(
        rest["events"],
        json!(whole["events"].as_array().unwrap()[3..])
    );
    assert_eq!(poll("?since=2").await.ok(200), rest);
    let far = poll("?lastSequence=18446744073709551616").await.ok(200);
    assert_eq!(far["events"], json!([]));
    let beyond = poll("?lastSequence=99999").await.ok(200);
    assert_eq!(
        (&beyond["events"], &beyond["isTerminal"]),
        (&json!([]), &json!(true))
    );
    for bad in [
        "?lastSequence=abc",
        "?lastSequence=-1",
        "?timeout=0",
        "?timeout=61",
    ] {
        poll(bad).await.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn poll_returns_when_an_event_arrives() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a"), noop("b")]).await;
    let last = server.log(&run).await["lastEventSeq"].as_u64().unwrap();
    let path = format!("/v1/runs/{run}/events/poll?lastSequence={last}&timeout=60");
    let waiting = server.get(&path);
    let (page, ()) = tokio::join!(waiting, server.advance(3601));
    let page = page.ok(200);
    assert_eq!(page["events"][0]["sequence"], last + 1);
}

#[tokio::test]
async fn debug_bundle_contains_the_polled_events() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let reply = server.get(&format!("/v1/runs/{run}/debug-bundle")).await;
    assert_eq!(reply.header("cache-control"), "no-store");
    let bundle = reply.ok(200);
    let log = server.log(&run).await;
    let count = log["events"].as_array().unwrap().len();
    assert_eq!(bundle["events"].as_array().unwrap().len(), count);
    assert_eq!(bundle["metrics"]["eventCount"], count);
    let cut = server
        .get(&format!("/v1/runs/{run}/debug-bundle?maxEvents=1"))
        .await
        .ok(200);
    assert_eq!(cut["metrics"]["eventCount"], 1);
    let spans = server
        .get(&format!("/v1/host/sample/test/otel/spans?runId={run}"))
        .await;
    assert!(spans.ok(200)["spans"].is_array());
}
