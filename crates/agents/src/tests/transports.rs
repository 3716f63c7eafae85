//! Sending: the loopback transport with its faults (Z-198, Z-223).

use super::fixtures::*;
use crate::LoopbackFaults;
use tandem_record::EffectId;
use tandem_record::conversation::{Modality, SendRequest};
use tandem_runtime::conversation::{AgentHost, SendError};

async fn send(desk: &Desk, to: &str, text: &str, key: &str) -> Result<Option<String>, SendError> {
    let message = SendRequest {
        transport: "loopback".to_owned(),
        to: to.to_owned(),
        text: text.to_owned(),
        modality: Modality::Text,
        attempts: 0,
    };
    let key = EffectId::from(key);
    desk.agents.send(&message, &key, &context()).await
}

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
    let message = SendRequest {
        transport: "pigeon".to_owned(),
        to: "u1".to_owned(),
        text: "x".to_owned(),
        modality: Modality::Text,
        attempts: 0,
    };
    let refused = desk
        .agents
        .send(&message, &EffectId::from("k"), &context())
        .await;
    assert!(!refused.expect_err("no transport").is_transient);
}
