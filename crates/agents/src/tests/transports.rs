//! Transports: the loopback transport with its faults, and webhooks.

use super::fixtures::*;
use super::tools::server;
use crate::LoopbackFaults;
use serde_json::json;
use std::collections::BTreeMap;
use tandem_record::EffectId;
use tandem_runtime::conversation::{
    AgentHost, LifeSign, LifeSignKind, MediaContent, OutgoingMessage, SendError, TransportDelivery,
    TransportRefusal, TransportRequest,
};

fn message<'a>(
    transport: &'a str,
    to: &'a str,
    text: &'a str,
    key: &'a EffectId,
) -> OutgoingMessage<'a> {
    OutgoingMessage {
        transport,
        to,
        text,
        speech: None,
        key,
        may_be_repeated: false,
        origin: None,
        last_received_at: None,
    }
}

async fn send(desk: &Desk, to: &str, text: &str, key: &str) -> Result<Option<String>, SendError> {
    let key = EffectId::from(key);
    let message = message("loopback", to, text, &key);
    let taken = desk.agents.send(&message, &context()).await?;
    Ok(taken.id)
}

/// Z-198 (half: the transport is given the key), Z-223 (half: a key is listed once)
#[tokio::test]
async fn loopback_lists_a_key_once_and_counts_deliveries() {
    let desk = demo("");
    let first = send(&desk, "u1", "hi", "k1").await.expect("accepted");
    assert_eq!(send(&desk, "u1", "hi", "k1").await, Ok(first));
    send(&desk, "u2", "hello", "k2").await.expect("accepted");
    let to_first = desk.recorder.messages(Some("u1"));
    assert_eq!(to_first.len(), 1);
    assert_eq!(
        (to_first[0].text.as_str(), to_first[0].deliveries),
        ("hi", 2)
    );
    assert_eq!((to_first[0].key.as_str(), to_first[0].at), ("k1", NOW));
    assert_eq!(desk.recorder.messages(None).len(), 2);
    assert_eq!(desk.recorder.messages(Some("u3")), []);
}

/// Z-223 (half: faults)
#[tokio::test]
async fn injected_faults_fail_drop_and_pause() {
    let desk = demo("");
    desk.recorder.inject(LoopbackFaults {
        fail_next: 1,
        drop_next: 1,
        paused: false,
    });
    let failed = send(&desk, "u1", "a", "k1").await.expect_err("a failure");
    assert!(failed.is_transient, "another attempt may succeed");
    assert!(
        send(&desk, "u1", "a", "k1")
            .await
            .expect("accepted")
            .is_some()
    );
    assert_eq!(desk.recorder.messages(None), [], "accepted and lost");
    send(&desk, "u1", "b", "k2").await.expect("accepted");
    desk.recorder.inject(LoopbackFaults {
        paused: true,
        ..LoopbackFaults::default()
    });
    assert!(
        send(&desk, "u1", "c", "k3")
            .await
            .expect_err("a pause")
            .is_transient
    );
    desk.recorder.inject(LoopbackFaults::default());
    send(&desk, "u1", "c", "k3").await.expect("accepted");
    let texts: Vec<String> = desk
        .recorder
        .messages(None)
        .into_iter()
        .map(|m| m.text)
        .collect();
    assert_eq!(texts, ["b", "c"]);
}

#[tokio::test]
async fn unknown_transport_is_refused_for_good() {
    let desk = demo("");
    let key = EffectId::from("k");
    let message = message("pigeon", "u1", "x", &key);
    let refused = desk.agents.send(&message, &context()).await;
    assert!(!refused.expect_err("no transport").is_transient);
}

/// An agent with the transport `crm`.
fn webhook_desk(url: &str, more: &str) -> Desk {
    let desk = demo(&format!(
        "transports: {{ crm: {{ kind: 'webhook', url: '{url}/in', secretEnv: 'CRM_SECRET', {more} }} }},"
    ));
    assert_eq!(desk.error_texts(), Vec::<String>::new());
    desk
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_default()
}

/// Z-198: the key goes with every attempt. Z-42 (half: what is sent is bounded in time and guarded)
#[tokio::test]
async fn webhook_gets_signed_messages_with_their_key() {
    let network = server(|_| Some((200, json!({"messageId": "n-1"}).to_string()))).await;
    let desk = webhook_desk(&network.url, "");
    let key = EffectId::from("s_1:9");
    let speech = MediaContent {
        content_type: "audio/mpeg".to_owned(),
        bytes: b"spoken".to_vec(),
    };
    let spoken = OutgoingMessage {
        speech: Some(&speech),
        ..message("crm", "u1", "hello", &key)
    };
    let sent = desk.agents.send(&spoken, &context()).await;
    assert_eq!(sent.expect("taken").id.as_deref(), Some("n-1"));
    let requests = network.requests.lock().clone();
    let [(head, body)] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!(body["type"], "message");
    assert_eq!(
        (&body["to"], &body["text"]),
        (&json!("u1"), &json!("hello"))
    );
    assert_eq!(body["speech"]["contenttype"], "audio/mpeg", "{body}");
    assert_eq!(header(head, "idempotency-key"), "s_1:9");
    let seconds = (NOW.0 / 1000).to_string();
    assert_eq!(header(head, "x-tandem-timestamp"), seconds);
    assert!(header(head, "x-tandem-signature").starts_with("sha256="));
}

/// Z-198: at least once, or at most once, as the agent's file says.
#[tokio::test]
async fn webhook_repeats_only_what_may_be_repeated() {
    for (delivery, repeats) in [("at_least_once", true), ("at_most_once", false)] {
        let network = server(|number| match number {
            1 => Some((503, "{}".to_owned())),
            2 => Some((400, "{}".to_owned())),
            _ => Some((200, "{}".to_owned())),
        })
        .await;
        let desk = webhook_desk(&network.url, &format!("delivery: '{delivery}'"));
        let key = EffectId::from("k1");
        let attempt = message("crm", "u1", "hello", &key);
        let busy = desk.agents.send(&attempt, &context()).await;
        assert!(busy.expect_err("busy").is_transient, "it was not taken");
        let refused = desk.agents.send(&attempt, &context()).await;
        assert!(!refused.expect_err("refused").is_transient);
        let unknown = OutgoingMessage {
            may_be_repeated: true,
            ..attempt
        };
        let again = desk.agents.send(&unknown, &context()).await;
        assert_eq!(again.is_ok(), repeats, "{delivery}");
        assert_eq!(network.requests.lock().len(), if repeats { 3 } else { 2 });
        // Nobody answers: whether it was taken is not known.
        let desk = webhook_desk("http://127.0.0.1:1", &format!("delivery: '{delivery}'"));
        let lost = desk.agents.send(&attempt, &context()).await;
        assert_eq!(lost.expect_err("nobody").is_transient, repeats);
    }
}

fn received(
    desk: &Desk,
    body: &str,
    time: &str,
    secret: &str,
) -> Result<TransportDelivery, TransportRefusal> {
    let headers = BTreeMap::from([
        ("x-tandem-timestamp".to_owned(), time.to_owned()),
        (
            "x-tandem-signature".to_owned(),
            tandem_access::signature(secret, time, body.as_bytes()),
        ),
    ]);
    let request = TransportRequest {
        headers: &headers,
        body: body.as_bytes(),
        now: NOW,
    };
    desk.agents.receive(&demo_id(), "crm", &request)
}

/// Z-9 (half: the fingerprint's time is the signed one)
#[tokio::test]
async fn webhook_takes_signed_messages_only() {
    const SECRET: &str = "a-secret-of-both-sides";
    let desk = webhook_desk("http://127.0.0.1:1", "tenant: 'acme'");
    let body = json!({"messageId": "m1", "from": "u1", "body": "hi"}).to_string();
    let now = NOW.0 / 1000;
    let time = now.to_string();
    let delivery = received(&desk, &body, &time, SECRET).expect("a message");
    assert_eq!(delivery.owner.tenant.as_str(), "acme");
    let [message] = delivery.messages.as_slice() else {
        panic!("{delivery:?}")
    };
    assert_eq!((message.from.as_str(), message.body.as_str()), ("u1", "hi"));
    assert_eq!(message.sent_at, NOW);

    let unauthenticated = Err(TransportRefusal::Unauthenticated);
    assert_eq!(
        received(&desk, &body, &time, "another-secret-entirely"),
        unauthenticated
    );
    for shift in [-301, 301] {
        let time = (now + shift).to_string();
        assert_eq!(
            received(&desk, &body, &time, SECRET),
            unauthenticated,
            "{shift}"
        );
    }
    assert_eq!(received(&desk, &body, "soon", SECRET), unauthenticated);
    let changed = TransportRequest {
        headers: &BTreeMap::from([
            ("x-tandem-timestamp".to_owned(), time.clone()),
            (
                "x-tandem-signature".to_owned(),
                tandem_access::signature(SECRET, &time, b"something else"),
            ),
        ]),
        body: body.as_bytes(),
        now: NOW,
    };
    assert_eq!(
        desk.agents.receive(&demo_id(), "crm", &changed),
        unauthenticated
    );
    let unsigned = TransportRequest {
        headers: &BTreeMap::new(),
        ..changed
    };
    assert_eq!(
        desk.agents.receive(&demo_id(), "crm", &unsigned),
        unauthenticated
    );
    assert!(matches!(
        received(&desk, "{}", &time, SECRET),
        Err(TransportRefusal::Invalid(_))
    ));
    let elsewhere = desk.agents.receive(&demo_id(), "loopback", &unsigned);
    assert_eq!(elsewhere, Err(TransportRefusal::Unknown));
}

#[test]
fn transports_are_checked_when_the_agent_is_loaded() {
    for (settings, problem) in [
        ("{}", "needs a kind"),
        ("{ kind: 'pigeon' }", "unknown kind"),
        (
            "{ kind: 'webhook', url: 'ftp://x', secretEnv: 'CRM_SECRET' }",
            "url",
        ),
        ("{ kind: 'webhook', url: 'https://x.example' }", "secretEnv"),
        (
            "{ kind: 'webhook', url: 'https://x.example', secretEnv: 'A', retries: 3 }",
            "retries",
        ),
        (
            "{ kind: 'webhook', url: 'https://x.example', secretEnv: 'A', timeoutMs: 0 }",
            "timeoutMs",
        ),
    ] {
        let desk = demo(&format!("transports: {{ crm: {settings} }},"));
        let errors = desk.error_texts();
        let is_named =
            |error: &String| error.contains("/transports/crm") && error.contains(problem);
        assert!(errors.iter().any(is_named), "{settings}: {errors:?}");
    }
}

/// Z-244 (half: a transport that offers signs gets them, in order)
#[tokio::test]
async fn webhook_is_shown_the_signs_it_offers() {
    let network = server(|_| Some((200, "{}".to_owned()))).await;
    let desk = webhook_desk(&network.url, "typing: true");
    let sign = |kind| LifeSign {
        transport: "crm".to_owned(),
        to: "u1".to_owned(),
        kind,
    };
    let read = LifeSignKind::Read {
        message_ids: vec!["m1".into()],
    };
    for kind in [
        read,
        LifeSignKind::Typing { active: true },
        LifeSignKind::Typing { active: false },
    ] {
        desk.agents.show_life_sign(&demo_id(), sign(kind));
    }
    while network.requests.lock().len() < 2 {
        tokio::task::yield_now().await;
    }
    let requests = network.requests.lock().clone();
    let signs: Vec<_> = requests
        .iter()
        .map(|(_, body)| (&body["type"], &body["active"]))
        .collect();
    let typing = json!("typing");
    assert_eq!(signs, [(&typing, &json!(true)), (&typing, &json!(false))]);
}
