//! Telegram: the Bot API.

use super::super::fixtures::*;
use super::super::tools::server;
use super::*;
use serde_json::{Value, json};
use tandem_runtime::conversation::{LifeSign, LifeSignKind};

const SECRET: (&str, &str) = (
    "x-telegram-bot-api-secret-token",
    "telegram-secret-of-tests",
);

fn telegram(url: &str, more: &str) -> Desk {
    network_desk(&format!(
        "kind: 'telegram', token: {{ env: 'TG_TOKEN' }}, secret: {{ env: 'TG_SECRET' }}, apiUrl: '{url}', {more}"
    ))
}

fn update(message: Value) -> String {
    json!({"update_id": 7, "message": message}).to_string()
}

fn private_message(id: i64, text: &str) -> Value {
    json!({
        "message_id": id, "date": 1_767_258_000, "text": text,
        "chat": {"id": 42, "type": "private"},
        "from": {"id": 42, "is_bot": false, "first_name": "Ada", "last_name": "L"},
    })
}

/// Z-9 (half: the network's message id, of Telegram), Z-111 (half: messages of bots are dropped)
#[tokio::test]
async fn only_requests_with_the_secret_are_read() {
    let desk = telegram("https://api.example", "tenant: 'acme'");
    let body = update(private_message(5, "hi"));
    let delivery = receive(&desk, &[SECRET], &body).expect("a message");
    assert_eq!(read(&delivery), [("42:5", "42", "hi")]);
    assert_eq!(delivery.owner.tenant.as_str(), "acme");
    assert_eq!(delivery.messages[0].display_name.as_deref(), Some("Ada L"));
    assert_eq!(delivery.messages[0].sent_at.0, 1_767_258_000_000);
    let again = receive(&desk, &[SECRET], &body).expect("the same");
    assert_eq!(again, delivery, "a repeated update has the same id");
    let refused = Err(TransportRefusal::Unauthenticated);
    for headers in [
        vec![],
        vec![(SECRET.0, "")],
        vec![(SECRET.0, "telegram-secret-of-test")],
        vec![(SECRET.0, "another-secret-entirely")],
    ] {
        assert_eq!(receive(&desk, &headers, &body), refused, "{headers:?}");
    }
    let invalid = receive(&desk, &[SECRET], "{");
    assert!(matches!(invalid, Err(TransportRefusal::Invalid(_))));
}

#[tokio::test]
async fn only_what_people_write_to_the_bot_is_a_message() {
    let desk = telegram("https://api.example", "");
    let mut of_bot = private_message(1, "echo");
    of_bot["from"]["is_bot"] = json!(true);
    let mut of_group = private_message(2, "hi all");
    of_group["chat"] = json!({"id": -7, "type": "supergroup"});
    let mut service = private_message(3, "");
    service.as_object_mut().expect("an object").remove("text");
    let other = json!({"update_id": 8, "edited_message": private_message(4, "edit")}).to_string();
    for body in [
        update(of_bot),
        update(of_group),
        update(service),
        other,
        "{}".to_owned(),
    ] {
        let delivery = receive(&desk, &[SECRET], &body).expect("it is of the network");
        assert_eq!(delivery.messages, [], "{body}");
    }
    let mut photo = private_message(6, "");
    photo["caption"] = json!("look");
    photo["photo"] = json!([{"file_id": "small"}, {"file_id": "large"}]);
    let delivery = receive(&desk, &[SECRET], &update(photo)).expect("a photo");
    assert_eq!(
        delivery.messages[0].media.as_ref().expect("media")["fileId"],
        "large"
    );
    assert_eq!(delivery.messages[0].kind.as_deref(), Some("image"));
}

#[tokio::test]
async fn texts_are_sent_and_failures_are_told_apart() {
    let network = server(|number| match number {
        1 => Some((200, json!({"ok": true, "result": {"message_id": 9}}).to_string())),
        2 => Some((429, json!({"ok": false, "description": "Too Many Requests", "parameters": {"retry_after": 12}}).to_string())),
        3 => Some((403, json!({"ok": false, "description": "Forbidden: bot was blocked, 123456:bot-token-of-tests"}).to_string())),
        _ => Some((502, "bad gateway".to_owned())),
    })
    .await;
    let desk = telegram(&network.url, "messagesPerSecond: 1000");
    assert_eq!(send(&desk, "42", "hello", "k1").await, Ok(taken("42:9")));
    let busy = send(&desk, "42", "hello", "k2").await.expect_err("busy");
    assert!(busy.is_transient && !busy.is_held);
    assert_eq!(busy.retry_after_ms, Some(12_000));
    let blocked = send(&desk, "42", "hello", "k3").await.expect_err("blocked");
    assert!(!blocked.is_transient);
    assert!(blocked.message.contains("blocked"), "{}", blocked.message);
    assert_no_secret(&blocked.message);
    let down = send(&desk, "43", "hello", "k4").await.expect_err("down");
    assert!(down.is_transient);
    let requests = network.requests.lock().clone();
    assert!(
        requests[0]
            .0
            .starts_with("post /bot123456:bot-token-of-tests/sendmessage ")
    );
    assert_eq!(requests[0].1, json!({"chat_id": "42", "text": "hello"}));
}

/// Z-244 (half: Telegram shows typing)
#[tokio::test]
async fn typing_is_shown_where_it_is_wanted() {
    let network = server(|_| Some((200, "{}".to_owned()))).await;
    let desk = telegram(&network.url, "typing: true");
    for active in [true, false] {
        let sign = LifeSign {
            transport: NET.to_owned(),
            to: "42".to_owned(),
            kind: LifeSignKind::Typing { active },
        };
        desk.agents.show_life_sign(&demo_id(), sign);
    }
    while network.requests.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let requests = network.requests.lock().clone();
    assert_eq!(requests.len(), 1, "the network ends it by itself");
    assert_eq!(requests[0].1, json!({"chat_id": "42", "action": "typing"}));
}

#[test]
fn long_texts_are_split_where_the_network_wants_it() {
    let desk = telegram("https://api.example", "");
    let parts = |text: &str| desk.agents.parts(&demo_id(), NET, text);
    assert_eq!(parts("hello"), ["hello"]);
    let long = "😀".repeat(4_096);
    let split = parts(&long);
    assert_eq!(split.len(), 2);
    assert_eq!(split.concat(), long);
    assert!(
        split
            .iter()
            .all(|part| part.encode_utf16().count() <= 4_096)
    );
}

#[test]
fn settings_are_checked() {
    let with = |more: &str| {
        format!(
            "kind: 'telegram', token: {{ env: 'TG_TOKEN' }}, secret: {{ env: 'TG_SECRET' }}, {more}"
        )
    };
    let markers = with("markRead: true");
    let window = with("templates: { any: { name: 'x' } }");
    let address = with("apiUrl: 'ftp://x'");
    let rate = with("messagesPerSecond: 0");
    assert_refused(&[
        ("kind: 'telegram', secret: { env: 'TG_SECRET' }", "token"),
        (
            "kind: 'telegram', token: 'abc', secret: { env: 'A' }",
            "struct",
        ),
        (&markers, "markRead"),
        (&window, "templates"),
        (&address, "apiUrl"),
        (&rate, "messagesPerSecond"),
    ]);
}

#[tokio::test]
async fn a_missing_or_short_secret_is_named_and_nothing_is_read() {
    for (name, problem) in [
        ("NOT_SET", "NOT_SET"),
        ("SHORT", "SHORT has fewer"),
        ("TANDEM_SECRET", "TANDEM_SECRET"),
    ] {
        let desk = network_desk(&format!(
            "kind: 'telegram', token: {{ env: 'TG_TOKEN' }}, secret: {{ env: '{name}' }}"
        ));
        let body = update(private_message(1, "hi"));
        assert_eq!(
            receive(&desk, &[SECRET], &body),
            Err(TransportRefusal::NotReady)
        );
        let state = desk
            .agents
            .transport_state(&demo_id(), NET)
            .expect("a transport");
        assert!(state.expect_err("not ready").contains(problem));
        let refused = send(&desk, "42", "x", "k").await.expect_err("not ready");
        assert!(refused.message.contains(problem), "{}", refused.message);
        assert!(!refused.message.contains("short-"), "{}", refused.message);
    }
}
