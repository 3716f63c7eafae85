//! What all networks have in common: rates, reply windows and templates, over transports of this host.

use super::super::fixtures::*;
use super::super::tools::server;
use super::*;
use tandem_record::Timestamp;

const WINDOW: &str = "replyWindowSeconds: 60, templates: { say: { name: 'news' } }";

fn late<'a>(message: OutgoingMessage<'a>, transport: &'a str) -> OutgoingMessage<'a> {
    OutgoingMessage {
        transport,
        last_received_at: Some(Timestamp(NOW.0 - 60_001)),
        ..message
    }
}

/// Z-240 (half: any transport may declare a window)
#[tokio::test]
async fn any_transport_may_have_a_reply_window() {
    let network = server(|_| Some((200, "{}".to_owned()))).await;
    let desk = demo(&format!(
        "transports: {{ loopback: {{ {WINDOW} }}, net: {{ kind: 'webhook', url: '{}', secretEnv: 'CRM_SECRET', {WINDOW} }} }},",
        network.url
    ));
    assert_eq!(desk.error_texts(), Vec::<String>::new());
    let key = EffectId::from("k1");
    for transport in ["loopback", "net"] {
        let message = late(text("u1", "hello", &key), transport);
        let sent = desk
            .agents
            .send(&message, &context())
            .await
            .expect("a template");
        assert_eq!(sent.template.as_deref(), Some("news"));
        let other = OutgoingMessage {
            origin: Some(CandidateOrigin::Ask),
            ..message
        };
        let closed = desk
            .agents
            .send(&other, &context())
            .await
            .expect_err("closed");
        assert!(closed.is_window_closed);
    }
    let listed = desk.recorder.messages(Some("u1"));
    assert_eq!(listed[0].text, "news");
    let posted = network.requests.lock()[0].1.clone();
    assert_eq!(
        (posted["type"].as_str(), posted["template"]["name"].as_str()),
        (Some("template"), Some("news"))
    );
}

/// Z-199 (half: too many messages are held back, which counts as no attempt)
#[tokio::test]
async fn what_exceeds_the_rate_is_held_back() {
    let network = server(|_| Some((200, "{}".to_owned()))).await;
    let desk = network_desk(&format!(
        "kind: 'webhook', url: '{}', secretEnv: 'CRM_SECRET', messagesPerSecond: 2",
        network.url
    ));
    for key in ["k1", "k2"] {
        send(&desk, "u1", "x", key).await.expect("sent");
    }
    let held = send(&desk, "u2", "x", "k3").await.expect_err("held");
    assert!(held.is_held);
    assert_eq!(held.retry_after_ms, Some(500));
    assert_eq!(network.requests.lock().len(), 2);
}

#[test]
fn settings_without_an_effect_are_refused() {
    let settings = [
        ("loopback: { messagesPerSecond: 3 }", "/transports/loopback"),
        ("loopback: { kind: 'webhook' }", "/transports/loopback"),
        (
            "net: { kind: 'webhook', url: 'https://x.example', secretEnv: 'A', templates: { any: { name: 'x' } } }",
            "replyWindowSeconds",
        ),
    ];
    for (transports, problem) in settings {
        let errors = demo(&format!("transports: {{ {transports} }},")).error_texts();
        assert!(
            errors.iter().any(|error| error.contains(problem)),
            "{transports}: {errors:?}"
        );
    }
}
