//! WhatsApp: the Cloud API.

use super::super::fixtures::*;
use super::super::tools::server;
use super::*;
use serde_json::{Value, json};
use tandem_runtime::conversation::{LifeSign, LifeSignKind};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn whatsapp(url: &str, more: &str) -> Desk {
    network_desk(&format!(
        "kind: 'whatsapp', phoneNumberId: '111', token: {{ env: 'WA_TOKEN' }}, appSecret: {{ env: 'WA_SECRET' }},
         verifyToken: {{ env: 'WA_VERIFY' }}, apiUrl: '{url}', {more}"
    ))
}

fn signed(desk: &Desk, body: &str) -> Result<TransportDelivery, TransportRefusal> {
    let signature = format!(
        "sha256={}",
        hmac_hex("whatsapp-secret-of-tests", body.as_bytes())
    );
    receive(desk, &[("x-hub-signature-256", &signature)], body)
}

fn notification(field: &str, value: Value) -> String {
    let mut value = value;
    value["metadata"] = json!({"phone_number_id": "111"});
    json!({"object": "whatsapp_business_account",
        "entry": [{"id": "1", "changes": [{"field": field, "value": value}]}]})
    .to_string()
}

fn said(id: &str, at: i64, text: &str) -> Value {
    json!({"id": id, "from": "4915", "timestamp": at.to_string(), "type": "text", "text": {"body": text}})
}

/// Z-9 (half: the network's message id, of WhatsApp)
#[tokio::test]
async fn a_request_has_many_messages_and_must_be_signed() {
    let desk = whatsapp("https://graph.example", "");
    let body = notification(
        "messages",
        json!({
            "contacts": [{"wa_id": "4915", "profile": {"name": "Ada"}}],
            "messages": [
                said("wamid.2", 20, "second"),
                said("wamid.1", 10, "first"),
                {"id": "wamid.3", "from": "4915", "timestamp": "30", "type": "image",
                 "image": {"id": "f1", "mime_type": "image/jpeg", "caption": "look"}},
                {"id": "wamid.4", "from": "4915", "timestamp": "31", "type": "reaction", "reaction": {"emoji": "x"}},
                {"id": "wamid.5", "from": "4915", "timestamp": "32", "type": "interactive",
                 "interactive": {"type": "button_reply", "button_reply": {"id": "b", "title": "Yes"}}},
            ],
        }),
    );
    let delivery = signed(&desk, &body).expect("messages");
    assert_eq!(
        read(&delivery),
        [
            ("wamid.1", "+4915", "first"),
            ("wamid.2", "+4915", "second"),
            ("wamid.3", "+4915", "look"),
            ("wamid.5", "+4915", "Yes"),
        ]
    );
    assert_eq!(delivery.messages[0].display_name.as_deref(), Some("Ada"));
    assert_eq!(
        delivery.messages[2].media.as_ref().expect("media")["fileId"],
        "f1"
    );
    assert_eq!(signed(&desk, &body).expect("again"), delivery);
    let refused = Err(TransportRefusal::Unauthenticated);
    let other = hmac_hex("another-secret-entirely", body.as_bytes());
    for signature in ["", "sha256=", &other, &format!("sha256={other}")] {
        let headers = [("x-hub-signature-256", signature)];
        assert_eq!(receive(&desk, &headers, &body), refused, "{signature}");
    }
    assert_eq!(receive(&desk, &[], &body), refused);
    let signature = format!(
        "sha256={}",
        hmac_hex("whatsapp-secret-of-tests", body.as_bytes())
    );
    let changed = body.replace("first", "worst");
    let headers = [("x-hub-signature-256", signature.as_str())];
    assert_eq!(receive(&desk, &headers, &changed), refused);
}

#[tokio::test]
async fn statuses_and_other_numbers_are_no_messages() {
    let desk = whatsapp("https://graph.example", "");
    let statuses = notification(
        "messages",
        json!({"statuses": [
            {"id": "wamid.9", "status": "read", "timestamp": "5", "recipient_id": "4915"},
            {"id": "wamid.9", "status": "sent", "timestamp": "4", "recipient_id": "4915"},
        ]}),
    );
    let other = json!({"entry": [{"changes": [{"field": "messages", "value": {
        "metadata": {"phone_number_id": "222"}, "messages": [said("wamid.1", 1, "hi")]}}]}]});
    for body in [statuses, other.to_string(), "{}".to_owned()] {
        assert_eq!(
            signed(&desk, &body).expect("of the network").messages,
            [],
            "{body}"
        );
    }
    assert!(matches!(
        signed(&desk, "[1"),
        Err(TransportRefusal::Invalid(_))
    ));
}

/// Z-235 (half: the transport reports what was written from the agent's own account)
#[tokio::test]
async fn messages_of_the_business_app_are_reported_apart() {
    let desk = whatsapp("https://graph.example", "");
    let body = notification(
        "smb_message_echoes",
        json!({"message_echoes": [
            {"id": "wamid.7", "from": "111", "to": "4915", "timestamp": "9", "type": "text", "text": {"body": "I take over"}},
        ]}),
    );
    let delivery = signed(&desk, &body).expect("an echo");
    assert_eq!(delivery.messages, []);
    let [echo] = delivery.own_account.as_slice() else {
        panic!("{delivery:?}")
    };
    assert_eq!(
        (
            echo.message_id.as_str(),
            echo.to.as_str(),
            echo.body.as_str()
        ),
        ("wamid.7", "+4915", "I take over")
    );
}

#[tokio::test]
async fn the_network_asks_whether_the_address_is_right() {
    let desk = whatsapp("https://graph.example", "");
    let ask = |mode: &str, token: &str, challenge: &str| {
        let query = [
            ("hub.mode", mode),
            ("hub.verify_token", token),
            ("hub.challenge", challenge),
        ];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
        desk.agents
            .verify_address(&demo_id(), NET, &query.into_iter().collect())
    };
    let token = "whatsapp-verify-of-tests";
    assert_eq!(
        ask("subscribe", token, "1158201444"),
        Ok("1158201444".to_owned())
    );
    for (mode, token) in [
        ("subscribe", "wrong"),
        ("subscribe", ""),
        ("unsubscribe", token),
    ] {
        assert_eq!(
            ask(mode, token, "1"),
            Err(TransportRefusal::Unauthenticated)
        );
    }
    for challenge in ["", "<script>alert(1)</script>"] {
        assert!(matches!(
            ask("subscribe", token, challenge),
            Err(TransportRefusal::Invalid(_))
        ));
    }
    let other = demo("");
    let asked = other
        .agents
        .verify_address(&demo_id(), "loopback", &BTreeMap::new());
    assert_eq!(asked, Err(TransportRefusal::Unknown));
}

fn graph_error(code: i64, message: &str) -> String {
    json!({"error": {"code": code, "message": message}}).to_string()
}

/// Z-198 (half: WhatsApp is given the key)
#[tokio::test]
async fn texts_are_sent_and_failures_are_told_apart() {
    let network = server(|number| match number {
        1 => Some((200, json!({"messages": [{"id": "wamid.x"}]}).to_string())),
        2 => Some((400, graph_error(131_056, "pair rate limit"))),
        3 => Some((
            400,
            graph_error(131_026, "undeliverable whatsapp-token-of-tests"),
        )),
        _ => Some((400, graph_error(131_047, "re-engagement"))),
    })
    .await;
    let desk = whatsapp(&network.url, "");
    assert_eq!(
        send(&desk, "+4915", "hello", "s_1:9").await,
        Ok(taken("wamid.x"))
    );
    let limited = send(&desk, "4915", "a", "k").await.expect_err("limited");
    assert!(limited.is_transient);
    assert_eq!(limited.retry_after_ms, Some(6_000));
    let failed = send(&desk, "4915", "a", "k").await.expect_err("final");
    assert!(!failed.is_transient && failed.message.contains("undeliverable"));
    assert_no_secret(&failed.message);
    let closed = send(&desk, "4915", "a", "k").await.expect_err("closed");
    assert!(closed.is_window_closed && !closed.is_transient);
    let (head, body) = network.requests.lock()[0].clone();
    assert!(head.starts_with("post /111/messages "), "{head}");
    assert!(head.contains("authorization: bearer whatsapp-token-of-tests"));
    assert_eq!(body["biz_opaque_callback_data"], "s_1:9");
    assert_eq!(body["text"]["body"], "hello");
    assert_eq!(body["to"], "4915");
}

/// Z-240 (half: after a day the template is sent, or nothing)
#[tokio::test]
async fn after_a_day_only_a_template_is_sent() {
    let network =
        server(|_| Some((200, json!({"messages": [{"id": "wamid.t"}]}).to_string()))).await;
    let template =
        "templates: { say: { name: 'news', language: 'en_US', parameters: ['{{text}}'] } }";
    let desk = whatsapp(&network.url, template);
    let key = EffectId::from("k1");
    let late = |since: i64| OutgoingMessage {
        last_received_at: Some(tandem_record::Timestamp(NOW.0 - since)),
        ..text("4915", "your order\nis here", &key)
    };
    let in_time = desk.agents.send(&late(DAY_MS), &context()).await;
    assert_eq!(in_time.expect("in time").template, None);
    let sent = desk
        .agents
        .send(&late(DAY_MS + 1), &context())
        .await
        .expect("a template");
    assert_eq!(sent.template.as_deref(), Some("news"));
    let body = network.requests.lock()[1].1.clone();
    assert_eq!(body["type"], "template");
    assert_eq!(
        body["template"]["language"]["code"], "en_us",
        "the test server writes lower case"
    );
    assert_eq!(
        body["template"]["components"][0]["parameters"][0]["text"],
        "your order is here"
    );
    // A text for something else has no template.
    let ask = OutgoingMessage {
        origin: Some(CandidateOrigin::Ask),
        ..late(DAY_MS + 1)
    };
    let closed = desk
        .agents
        .send(&ask, &context())
        .await
        .expect_err("closed");
    assert!(closed.is_window_closed && !closed.is_transient);
    assert_eq!(network.requests.lock().len(), 2, "nothing was sent");
}

/// Z-240 (half: the network's own answer that the time is over)
#[tokio::test]
async fn the_network_may_know_that_the_window_is_closed() {
    let network = server(|number| match number {
        1 => Some((400, graph_error(131_047, "re-engagement"))),
        _ => Some((200, json!({"messages": [{"id": "wamid.t"}]}).to_string())),
    })
    .await;
    let desk = whatsapp(&network.url, "templates: { any: { name: 'hello' } }");
    let key = EffectId::from("k1");
    let unknown = OutgoingMessage {
        last_received_at: None,
        ..text("4915", "x", &key)
    };
    let sent = desk
        .agents
        .send(&unknown, &context())
        .await
        .expect("a template");
    assert_eq!(sent.template.as_deref(), Some("hello"));
}

/// Z-244 (half: WhatsApp marks messages as read, with typing)
#[tokio::test]
async fn messages_are_marked_as_read() {
    let network = server(|_| Some((200, "{}".to_owned()))).await;
    let desk = whatsapp(&network.url, "markRead: true, typing: true");
    let message_ids = vec!["wamid.1".into(), "wamid.2".into()];
    let sign = LifeSign {
        transport: NET.to_owned(),
        to: "4915".to_owned(),
        kind: LifeSignKind::Read { message_ids },
    };
    desk.agents.show_life_sign(&demo_id(), sign);
    while network.requests.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let body = network.requests.lock()[0].1.clone();
    assert_eq!(
        body,
        json!({"messaging_product": "whatsapp", "status": "read",
        "message_id": "wamid.2", "typing_indicator": {"type": "text"}})
    );
}

#[test]
fn settings_are_checked() {
    let with = |more: &str| {
        format!(
            "kind: 'whatsapp', phoneNumberId: '111', token: {{ env: 'A' }}, appSecret: {{ env: 'B' }}, verifyToken: {{ env: 'C' }}, {more}"
        )
    };
    let typing = with("typing: true");
    let purpose = with("templates: { holiday: { name: 'x' } }");
    let empty = with("templates: { any: { name: '' } }");
    let window = with("replyWindowSeconds: 0");
    assert_refused(&[
        ("kind: 'whatsapp', phoneNumberId: '111'", "token"),
        (
            "kind: 'whatsapp', phoneNumberId: '1/2', token: { env: 'A' }, appSecret: { env: 'B' }, verifyToken: { env: 'C' }",
            "phoneNumberId",
        ),
        (&typing, "markRead"),
        (&purpose, "holiday"),
        (&empty, "template"),
        (&window, "replyWindowSeconds"),
    ]);
}
