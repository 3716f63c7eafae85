//! Slack: the Events API, chat.postMessage, and decisions with buttons.

use super::super::fixtures::*;
use super::super::tools::server;
use super::*;
use serde_json::{Value, json};
use tandem_runtime::conversation::{NoticeContent, NoticeDecision, QuestionNotice, ShownDecision};

fn slack(url: &str) -> Desk {
    network_desk(&format!(
        "kind: 'slack', token: {{ env: 'SLACK_TOKEN' }}, signingSecret: {{ env: 'SLACK_SECRET' }}, apiUrl: '{url}'"
    ))
}

fn signed_at(desk: &Desk, time: i64, body: &str) -> Result<TransportDelivery, TransportRefusal> {
    let time = time.to_string();
    let signed = format!("v0:{time}:{body}");
    let signature = format!(
        "v0={}",
        hmac_hex("slack-secret-of-tests", signed.as_bytes())
    );
    let headers = [
        ("x-slack-request-timestamp", time.as_str()),
        ("x-slack-signature", &signature),
    ];
    receive(desk, &headers, body)
}

fn signed(desk: &Desk, body: &str) -> Result<TransportDelivery, TransportRefusal> {
    signed_at(desk, NOW.0 / 1000, body)
}

fn event(event: Value) -> String {
    json!({"type": "event_callback", "event_id": "Ev1", "authorizations": [{"user_id": "UBOT"}], "event": event})
        .to_string()
}

fn direct(text: &str) -> Value {
    json!({"type": "message", "channel_type": "im", "channel": "D1", "user": "U1",
        "ts": "1767258000.000100", "client_msg_id": "c-1", "text": text})
}

/// Z-9 (half: the network's message id, of Slack)
#[tokio::test]
async fn requests_are_signed_and_not_old() {
    let desk = slack("https://slack.example");
    let body = event(direct("a &lt; b &amp; c"));
    let delivery = signed(&desk, &body).expect("a message");
    assert_eq!(
        read(&delivery),
        [("D1:1767258000.000100", "U1", "a < b & c")]
    );
    assert_eq!(signed(&desk, &body).expect("a retry"), delivery);
    let now = NOW.0 / 1000;
    let refused = Err(TransportRefusal::Unauthenticated);
    for shift in [-301, 301] {
        assert_eq!(signed_at(&desk, now + shift, &body), refused, "{shift}");
    }
    let time = now.to_string();
    for signature in [
        "",
        "v0=",
        &format!("v0={}", hmac_hex("another-secret", body.as_bytes())),
    ] {
        let headers = [
            ("x-slack-request-timestamp", time.as_str()),
            ("x-slack-signature", signature),
        ];
        assert_eq!(receive(&desk, &headers, &body), refused, "{signature}");
    }
    assert_eq!(receive(&desk, &[], &body), refused);
}

#[tokio::test]
async fn the_address_is_verified_with_a_challenge() {
    let desk = slack("https://slack.example");
    let body =
        json!({"type": "url_verification", "challenge": "3eZbrw1a", "token": "old"}).to_string();
    let delivery = signed(&desk, &body).expect("a challenge");
    assert_eq!(delivery.reply.as_deref(), Some("3eZbrw1a"));
    assert_eq!(
        receive(&desk, &[], &body),
        Err(TransportRefusal::Unauthenticated)
    );
}

/// Z-111 (half: a bot's own messages are dropped)
#[tokio::test]
async fn only_what_people_write_to_the_bot_is_a_message() {
    let desk = slack("https://slack.example");
    let change = |name: &str, value: Value| {
        let mut changed = direct("x");
        changed[name] = value;
        event(changed)
    };
    for body in [
        change("bot_id", json!("B1")),
        change("user", json!("UBOT")),
        change("subtype", json!("message_changed")),
        change("channel_type", json!("channel")),
        json!({"type": "app_rate_limited"}).to_string(),
    ] {
        assert_eq!(
            signed(&desk, &body).expect("of the network").messages,
            [],
            "{body}"
        );
    }
    let mention = json!({"type": "app_mention", "channel": "C1", "user": "U1", "ts": "17.0002",
        "thread_ts": "17.0001", "text": "<@UBOT> hello"});
    let delivery = signed(&desk, &event(mention)).expect("a mention");
    assert_eq!(read(&delivery), [("C1:17.0002", "U1@C1:17.0001", "hello")]);
}

#[tokio::test]
async fn texts_are_sent_to_users_and_threads() {
    let network = server(|number| match number {
        1 | 2 => Some((
            200,
            json!({"ok": true, "channel": "D1", "ts": "17.1"}).to_string(),
        )),
        3 => Some((
            200,
            json!({"ok": false, "error": "channel_not_found"}).to_string(),
        )),
        4 => Some((
            200,
            json!({"ok": false, "error": "internal_error"}).to_string(),
        )),
        _ => Some((
            429,
            json!({"ok": false, "error": "ratelimited"}).to_string(),
        )),
    })
    .await;
    let desk = slack(&network.url);
    assert_eq!(send(&desk, "U1", "a < b", "k1").await, Ok(taken("D1:17.1")));
    send(&desk, "U2@C1:17.0001", "hi", "k2")
        .await
        .expect("sent");
    let unknown = send(&desk, "U3", "x", "k3").await.expect_err("refused");
    assert!(!unknown.is_transient && unknown.message.contains("channel_not_found"));
    assert_no_secret(&unknown.message);
    assert!(
        send(&desk, "U4", "x", "k4")
            .await
            .expect_err("a fault")
            .is_transient
    );
    assert!(
        send(&desk, "U5", "x", "k5")
            .await
            .expect_err("too many")
            .is_transient
    );
    let requests = network.requests.lock().clone();
    assert_eq!(
        (&requests[0].1["channel"], &requests[0].1["text"]),
        (&json!("u1"), &json!("a &lt; b"))
    );
    assert_eq!(requests[0].1["metadata"]["event_payload"]["key"], "k1");
    assert_eq!(
        (&requests[1].1["channel"], &requests[1].1["thread_ts"]),
        (&json!("c1"), &json!("17.0001"))
    );
}

fn question() -> NoticeContent {
    NoticeContent {
        need: "Decision needed",
        headline: "u1 needs a decision".to_owned(),
        about: "Refund <b>50</b>".to_owned(),
        facts: vec![("Priority", "high".to_owned())],
        decided: Some(NoticeDecision {
            question: "esc-1".into(),
            digest: Some("d1".to_owned()),
        }),
        shown: None,
        deadline: None,
        next: "Decide in the inbox.".to_owned(),
    }
}

/// A notice as the network shows it, and what arrives when somebody presses a button.
#[tokio::test]
async fn an_escalation_is_decided_with_a_button() {
    let network = server(|_| {
        Some((
            200,
            json!({"ok": true, "channel": "C9", "ts": "18.1"}).to_string(),
        ))
    })
    .await;
    let desk = slack(&network.url);
    let (question, key) = (question(), EffectId::from("n1"));
    let notice = QuestionNotice {
        transport: NET,
        to: "C9",
        question: &question,
        link: None,
        key: &key,
        may_be_repeated: false,
    };
    desk.agents
        .notify(&demo_id(), &notice, NOW)
        .await
        .expect("posted");
    let posted = network.requests.lock()[0].1.clone();
    assert_eq!(posted["channel"], "c9");
    let shown = posted["blocks"][0]["text"]["text"]
        .as_str()
        .expect("a text");
    assert!(shown.contains("refund &lt;b&gt;50"), "{shown}");
    let buttons = posted["blocks"][1]["elements"].clone();
    assert_eq!(buttons[0]["value"], buttons[1]["value"]);
    let value = buttons[0]["value"].clone();

    let pressed = |action: &Value, value: &Value| {
        let payload = json!({
            "type": "block_actions", "user": {"id": "U7"}, "actions": [{"action_id": action, "value": value}],
            "container": {"channel_id": "C9", "message_ts": "18.1"},
            "message": {"blocks": posted["blocks"]},
        });
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("payload", &payload.to_string())
            .finish();
        let delivery = signed(&desk, &form).expect("an interaction");
        assert_eq!(delivery.reply.as_deref(), Some(""));
        assert_eq!(
            receive(&desk, &[], &form),
            Err(TransportRefusal::Unauthenticated)
        );
        delivery.decision
    };
    for (button, approved) in [(0, true), (1, false)] {
        let decision = pressed(&buttons[button]["action_id"], &value).expect("a decision");
        assert_eq!(
            (decision.question.as_str(), decision.by.as_str()),
            ("esc-1", "U7")
        );
        assert_eq!(decision.digest.as_deref(), Some("d1"));
        assert_eq!(decision.approved, approved);
    }
    assert_eq!(pressed(&json!("another"), &value), None);
    let old = pressed(&buttons[0]["action_id"], &json!("esc-1")).expect("of an earlier release");
    assert_eq!((old.question.as_str(), old.digest), ("esc-1", None));

    let notice = pressed(&buttons[0]["action_id"], &value)
        .expect("a decision")
        .notice;
    for (is_final, path, place) in [
        (true, "post /chat.update ", "ts"),
        (false, "post /chat.postephemeral ", "user"),
    ] {
        let before = network.requests.lock().len();
        let shown = ShownDecision {
            notice: notice.clone(),
            by: "U7".to_owned(),
            text: "Approved by ana.".to_owned(),
            is_final,
        };
        desk.agents.show_decision(&demo_id(), NET, shown);
        while network.requests.lock().len() == before {
            tokio::task::yield_now().await;
        }
        let (head, body) = network.requests.lock()[before].clone();
        assert!(head.starts_with(path), "{head}");
        assert_eq!(
            (&body["channel"], &body["text"]),
            (&json!("c9"), &json!("approved by ana."))
        );
        assert!(body[place].is_string(), "{body}");
        assert!(!body.to_string().contains("\"actions\""), "{body}");
    }
}

/// What cannot be accepted or rejected has no buttons; a long text is cut, and says so.
#[tokio::test]
async fn a_question_without_a_decision_has_no_buttons() {
    let network = server(|_| Some((200, json!({"ok": true}).to_string()))).await;
    let desk = slack(&network.url);
    let key = EffectId::from("n1");
    let question = NoticeContent {
        about: "&".repeat(2_000),
        decided: None,
        next: "Answer in the inbox.".to_owned(),
        ..question()
    };
    let notice = QuestionNotice {
        transport: NET,
        to: "C9",
        question: &question,
        link: None,
        key: &key,
        may_be_repeated: false,
    };
    let agent = demo_id();
    let told = desk.agents.notify(&agent, &notice, NOW);
    told.await.expect("posted");
    let posted = network.requests.lock()[0].1.clone();
    let blocks = posted["blocks"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 1, "{posted}");
    let text = blocks[0]["text"]["text"].as_str().expect("a text");
    assert!(text.len() < 3_000 && text.contains("(shortened)"), "{text}");
    assert!(text.ends_with("answer in the inbox."), "{text}");
}

#[test]
fn settings_are_checked() {
    assert_refused(&[
        ("kind: 'slack', token: { env: 'A' }", "signingSecret"),
        (
            "kind: 'slack', token: { env: 'A' }, signingSecret: { env: 'B' }, typing: true",
            "typing",
        ),
        (
            "kind: 'slack', token: { env: 'A', value: 'x' }, signingSecret: { env: 'B' }",
            "value",
        ),
    ]);
}
