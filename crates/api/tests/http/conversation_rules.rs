//! Rules of conversations over the API: limits, changed profiles, the trail of rights, circuits, strict mode.

use crate::chat_agents::{ChatAgents, Switches};
use crate::test_server::{HostOptions, TestServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tandem_record::conversation::{ProviderCircuit, ProviderCircuitChange};

const BASE: &str = "/v1/host/tandem";

async fn server(switches: &Arc<Switches>) -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::switched_by(Arc::clone(switches))),
        ..HostOptions::default()
    })
    .await
}

/// Delivers a message; gives the answer.
async fn send(server: &TestServer, agent: &str, from: &str, id: &str, body: &str) -> Value {
    deliver(server, agent, from, id, body, "?wait=true").await
}

async fn deliver(
    server: &TestServer,
    agent: &str,
    from: &str,
    id: &str,
    body: &str,
    query: &str,
) -> Value {
    let path = format!("{BASE}/agents/{agent}/inbound{query}");
    let message = json!({"messageId": id, "from": from, "body": body});
    server.post(&path, message).await.json()
}

async fn agent_events(server: &TestServer, agent: &str, name: &str) -> Vec<Value> {
    let path = format!("{BASE}/agents/{agent}/events?after=-1");
    events(&server.get(&path).await.ok(200), name)
}

async fn session_events(server: &TestServer, session: &Value, name: &str) -> Vec<Value> {
    let session = session.as_str().expect("a session");
    let path = format!("{BASE}/sessions/{session}/events?after=-1");
    events(&server.get(&path).await.ok(200), name)
}

fn events(page: &Value, name: &str) -> Vec<Value> {
    let events = page["events"].as_array().expect("events").iter();
    let named = events.filter(|event| event["type"] == name);
    named.cloned().collect()
}

/// Z-11 (half: the rate, its event, and delivery again)
#[tokio::test]
async fn message_over_the_rate_is_refused_with_an_event_and_may_come_again() {
    let server = server(&Arc::default()).await;
    for id in ["m1", "m2"] {
        assert_eq!(
            send(&server, "narrow", "ada", id, "hi").await["status"],
            "processed"
        );
    }
    for id in ["m3", "m4"] {
        let refused = send(&server, "narrow", "ada", id, "hi").await;
        assert_eq!(refused["status"], "ratelimited");
        assert_eq!(refused["sessionId"], Value::Null);
    }
    let told = agent_events(&server, "narrow", "transport:inbound:ratelimited").await;
    let [event, second] = told.as_slice() else {
        panic!("one event for each refusal: {told:?}");
    };
    assert_eq!(second["payload"], json!({"from": "ada", "messageId": "m4"}));
    assert_eq!(event["payload"], json!({"from": "ada", "messageId": "m3"}));
    assert_eq!(event["sessionId"], Value::Null);
    assert_eq!(event["channel"], "loopback");
    server.advance(61).await;
    let again = send(&server, "narrow", "ada", "m3", "hi").await;
    assert_eq!(again["status"], "processed", "its id was not claimed");
}

/// Z-11 (half: events of one sender's refusals are bounded, and those without one are counted)
#[tokio::test]
async fn refusals_of_one_sender_beyond_a_bound_are_counted() {
    let server = server(&Arc::default()).await;
    for number in 0..65 {
        send(&server, "narrow", "ada", &format!("m{number}"), "hi").await;
    }
    let kind = "transport:inbound:ratelimited";
    assert_eq!(agent_events(&server, "narrow", kind).await.len(), 60);
    server.advance(61).await;
    for number in 70..73 {
        send(&server, "narrow", "ada", &format!("m{number}"), "hi").await;
    }
    let told = agent_events(&server, "narrow", kind).await;
    let last = told.last().expect("an event");
    assert_eq!(last["payload"]["unlisted"], 3, "{last}");
}

/// Z-8 (half: nothing follows from a message that was accepted, also while the limit holds)
#[tokio::test]
async fn message_that_was_answered_is_a_duplicate_while_the_limit_holds() {
    let server = server(&Arc::default()).await;
    for id in ["m1", "m2", "m3"] {
        send(&server, "narrow", "ada", id, "hi").await;
    }
    let again = send(&server, "narrow", "ada", "m1", "hi").await;
    assert_eq!(again["status"], "duplicate");
    let refused = agent_events(&server, "narrow", "transport:inbound:ratelimited").await;
    assert_eq!(refused.len(), 1, "only m3");
}

/// Z-11 (half: turns under way count, not requests)
#[tokio::test]
async fn message_over_the_turns_under_way_is_refused_until_one_is_over() {
    let switches: Arc<Switches> = Arc::default();
    let server = server(&switches).await;
    let first = deliver(&server, "narrow", "ada", "m1", "wait", "").await;
    assert_eq!(first["status"], "accepted");
    let refused = send(&server, "narrow", "ben", "m2", "hi").await;
    assert_eq!(refused["status"], "overloaded");
    let told = agent_events(&server, "narrow", "transport:inbound:overload").await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0]["payload"],
        json!({"from": "ben", "messageId": "m2"})
    );
    switches.answers.notify_one();
    server.advance(0).await;
    let again = send(&server, "narrow", "ben", "m2", "hi").await;
    assert_eq!(again["status"], "processed");
}

/// Z-248 (half: a changed profile reaches the session that runs)
#[tokio::test]
async fn changed_profile_reaches_the_session_that_runs() {
    let server = server(&Arc::default()).await;
    let first = send(&server, "open", "ada", "m1", "name").await;
    assert_eq!(first["outbound"][0]["text"], "ada");
    let session = first["sessionId"].as_str().unwrap();
    let view = server
        .get(&format!("{BASE}/sessions/{session}"))
        .await
        .ok(200);
    let path = format!("{BASE}/users/{}", view["userId"].as_str().unwrap());
    let change = json!({"displayName": "Augusta"});
    let json = [("content-type", "application/json")];
    let changed = server
        .call_as(&server.key, "PATCH", &path, &json, change.to_string())
        .await;
    assert_eq!(changed.ok(200)["displayName"], "Augusta");
    let second = send(&server, "open", "ada", "m2", "name").await;
    assert_eq!(second["outbound"][0]["text"], "Augusta");
    let told = session_events(&server, &first["sessionId"], "user:profile:changed").await;
    assert_eq!(told.len(), 1);
}

/// Z-147 (half: the trail of all agents), Z-155 (half: the trail)
/// The trail of all agents, page by page, for those agents whose rules let the caller see it.
#[tokio::test]
async fn trail_of_rights_is_read_without_a_session_or_an_agent() {
    let server = server(&Arc::default()).await;
    let token = [("x-admin-token", "t"), ("content-type", "application/json")];
    for agent in ["open", "narrow"] {
        let sent = send(&server, agent, "ada", "m1", "hi").await;
        let session = sent["sessionId"].as_str().unwrap();
        let path = format!("{BASE}/sessions/{session}/mode");
        for mode in ["off", "auto"] {
            let body = json!({ "agentMode": mode }).to_string();
            server
                .call_as(&server.key, "POST", &path, &token, body)
                .await;
        }
    }
    let get = async |path: &str| server.call_as(&server.key, "GET", path, &token, "").await;
    let first = format!("{BASE}/audit?action=flow.manage&limit=1");
    let (mut found, mut path) = (Vec::new(), first.clone());
    loop {
        let page = get(&path).await.ok(200);
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.len() <= 1);
        found.extend(entries.iter().map(|entry| entry["actor"]["id"].clone()));
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        path = format!("{first}&cursor={next}");
        assert!(found.len() < 10, "the pages end");
    }
    assert_eq!(found, ["ana", "ana"], "only of agents that let her view it");
    let nobody = get(&format!("{BASE}/audit?actorId=nobody")).await.ok(200);
    assert_eq!(nobody["entries"], json!([]));
    // Looking at the trail of an agent is itself decided, without a session.
    let own = agent_events(&server, "strict", "admin.authz.denied").await;
    assert!(own.iter().any(|event| event["sessionId"].is_null()));
    get(&format!("{BASE}/audit?cursor=x"))
        .await
        .refused(400, "validation_error");
    let unknown = server.get(&first).await;
    assert_eq!(unknown.status.as_u16() / 100, 4, "nobody lets them view it");
}

/// Z-249 (half: events and metric of the circuit breaker)
#[tokio::test]
async fn changes_of_circuits_are_events_of_the_agent_and_counted() {
    let switches: Arc<Switches> = Arc::default();
    let server = server(&switches).await;
    switches
        .circuits
        .lock()
        .unwrap()
        .push(ProviderCircuitChange {
            provider: "openai".to_owned(),
            from: ProviderCircuit::Closed,
            to: ProviderCircuit::Open,
            until: Some(server.now().plus_ms(30_000)),
        });
    send(&server, "open", "ada", "m1", "hi").await;
    let told = agent_events(&server, "open", "model:circuit:open").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["payload"]["provider"], "openai");
    assert_eq!(told[0]["payload"]["from"], "closed");
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .text
            .contains("tandem_model_circuit_changes_total{name=\"open\"} 1")
    );
}

/// Z-232 (half: turns, questions, sends, duplicates)
#[tokio::test]
async fn conversations_are_counted() {
    let server = server(&Arc::default()).await;
    send(&server, "open", "ada", "m1", "book").await;
    send(&server, "open", "ada", "m1", "book").await;
    server.advance(0).await;
    let metrics = server.get("/metrics").await;
    for line in [
        "tandem_turns_total{source=\"flow\",outcome=\"processed\"} 1",
        "tandem_chat_questions_open{name=\"confirm\"} 1",
        "tandem_chat_sends_total{name=\"sent\"} 1",
        "tandem_inbound_dropped_total{name=\"duplicate\"} 1",
    ] {
        assert!(metrics.text.contains(line), "{line}");
    }
}

/// Z-217
#[tokio::test]
async fn flow_that_does_something_else_is_reported_at_once() {
    let switches: Arc<Switches> = Arc::default();
    let server = server(&switches).await;
    let first = send(&server, "narrow", "ada", "m1", "book").await;
    server.advance(0).await;
    let name = "flow.nondeterministic";
    assert!(
        session_events(&server, &first["sessionId"], name)
            .await
            .is_empty()
    );
    switches.is_nondeterministic.store(true, Ordering::Relaxed);
    send(&server, "narrow", "ben", "m2", "book").await;
    server.advance(0).await;
    let told = agent_events(&server, "narrow", name).await;
    let [event] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(event["flowId"], "book");
    assert_eq!(event["payload"]["expected"]["text"], "a");
    assert_eq!(event["payload"]["actual"]["text"], "b");
}

/// B10: everything due is done when the clock says so, sends to one address one after the other included.
#[tokio::test]
async fn clock_is_settled_only_when_all_texts_are_sent() {
    let server = server(&Arc::default()).await;
    for round in 0..10 {
        let users: Vec<String> = (0..8).map(|user| format!("u{round}-{user}")).collect();
        for user in &users {
            deliver(&server, "open", user, user, "refund", "").await;
        }
        let settled = server
            .post(&format!("{BASE}/test/clock"), json!({"advanceSeconds": 0}))
            .await;
        assert_eq!(settled.ok(200)["settled"], true);
        for user in &users {
            let path = format!("{BASE}/sessions?agentId=open&userExternalId={user}");
            let found = server.get(&path).await.ok(200);
            let session = found["sessions"][0]["id"].clone();
            let sent = session_events(&server, &session, "response:sent").await;
            assert_eq!(sent.len(), 1, "{user}");
        }
    }
}

/// Z-200 (half: messages, outbox and journals are read page by page)
#[tokio::test]
async fn inspection_of_a_session_is_paged() {
    let server = server(&Arc::default()).await;
    let first = send(&server, "open", "ada", "m1", "book").await;
    send(&server, "open", "ada", "m2", "sure").await;
    send(&server, "open", "ada", "m3", "hi").await;
    server.advance(0).await;
    let session = first["sessionId"].as_str().unwrap();
    for (what, noun, count) in [
        ("messages", "messages", 6),
        ("outbox", "outbox", 3),
        ("journal", "records", 9),
    ] {
        let path = format!("{BASE}/sessions/{session}/{what}");
        let all = server.get(&path).await.ok(200);
        assert!(all["nextCursor"].is_null(), "{all}");
        let all = all[noun].as_array().unwrap().clone();
        assert!(all.len() >= count, "{what}: {all:?}");
        let (mut paged, mut next) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("{path}?limit=2{next}")).await.ok(200);
            paged.extend(page[noun].as_array().unwrap().clone());
            match page["nextCursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => break,
            }
            assert!(paged.len() <= all.len(), "the pages end");
        }
        assert_eq!(paged, all, "{what}");
    }
}

/// Z-199 (half: eight attempts with growing pauses, then the event; the turn stays)
#[tokio::test]
async fn text_is_tried_eight_times_with_growing_pauses() {
    let switches: Arc<Switches> = Arc::default();
    let server = server(&switches).await;
    switches.refuses_texts.store(true, Ordering::Relaxed);
    let first = send(&server, "open", "ada", "m1", "hi").await;
    assert_eq!(first["status"], "processed");
    for _ in 0..90 {
        server.advance(1).await;
    }
    let attempts = switches.refused_at.lock().unwrap().clone();
    let pauses: Vec<u64> = attempts
        .windows(2)
        .map(|two| two[1].ms_since(two[0]))
        .collect();
    assert_eq!(pauses.len(), 7, "eight attempts: {pauses:?}");
    for (nth, pause) in pauses.iter().enumerate() {
        let base: u64 = 500 << nth;
        // The clock moves by a second at a time.
        let longest = base + base / 5 + 1_500;
        assert!((base..=longest).contains(pause), "{nth}: {pauses:?}");
    }
    let failed = session_events(&server, &first["sessionId"], "response:failed").await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["payload"]["stage"], "send");
    switches.refuses_texts.store(false, Ordering::Relaxed);
    assert_eq!(
        send(&server, "open", "ada", "m2", "hi").await["status"],
        "processed"
    );
}
