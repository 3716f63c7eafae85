//! Networks that speak their own APIs, against servers on this machine.

mod email;
mod send_limits;
mod slack;
mod telegram;
mod whatsapp;

use super::fixtures::*;
use std::collections::BTreeMap;
use tandem_record::EffectId;
use tandem_record::conversation::CandidateOrigin;
use tandem_runtime::conversation::{
    AgentHost, OutgoingMessage, SendError, TakenMessage, TransportDelivery, TransportRefusal,
    TransportRequest,
};

/// The name of the transport under test.
const NET: &str = "net";

/// An agent with one transport, whose settings these are.
fn network_desk(settings: &str) -> Desk {
    let desk = demo(&format!("transports: {{ {NET}: {{ {settings} }} }},"));
    assert_eq!(desk.error_texts(), Vec::<String>::new());
    desk
}

fn text<'a>(to: &'a str, text: &'a str, key: &'a EffectId) -> OutgoingMessage<'a> {
    OutgoingMessage {
        transport: NET,
        to,
        text,
        speech: None,
        key,
        may_be_repeated: false,
        origin: Some(CandidateOrigin::Say),
        last_received_at: Some(NOW),
    }
}

async fn send(desk: &Desk, to: &str, words: &str, key: &str) -> Result<TakenMessage, SendError> {
    let key = EffectId::from(key);
    desk.agents.send(&text(to, words, &key), &context()).await
}

/// A message that was taken under an id.
fn taken(id: &str) -> TakenMessage {
    TakenMessage {
        id: Some(id.to_owned()),
        template: None,
    }
}

fn receive(
    desk: &Desk,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<TransportDelivery, TransportRefusal> {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let headers: BTreeMap<String, String> = headers.collect();
    let request = TransportRequest {
        headers: &headers,
        body: body.as_bytes(),
        now: NOW,
    };
    desk.agents.receive(&demo_id(), NET, &request)
}

/// The ids and texts of the messages of a delivery.
fn read(delivery: &TransportDelivery) -> Vec<(&str, &str, &str)> {
    let messages = delivery.messages.iter();
    messages
        .map(|message| {
            let id = message.message_id.as_deref().unwrap_or_default();
            (id, message.from.as_str(), message.body.as_str())
        })
        .collect()
}

/// Every problem of an agent with this transport.
fn problems_of(settings: &str) -> Vec<String> {
    demo(&format!("transports: {{ {NET}: {{ {settings} }} }},")).error_texts()
}

/// Each of these settings is refused, with its place and this text.
fn assert_refused(cases: &[(&str, &str)]) {
    for (settings, problem) in cases {
        let errors = problems_of(settings);
        let is_named =
            |error: &String| error.contains("/transports/net") && error.contains(problem);
        assert!(errors.iter().any(is_named), "{settings}: {errors:?}");
    }
}

/// No part of what is said about a failure is a secret of the environment.
fn assert_no_secret(message: &str) {
    for secret in ["of-tests", "bot-token", "123456:"] {
        assert!(!message.contains(secret), "{message}");
    }
}

fn hmac_hex(secret: &str, body: &[u8]) -> String {
    tandem_access::hmac_hex(secret, &[body])
}
