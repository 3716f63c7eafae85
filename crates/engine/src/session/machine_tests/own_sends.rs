//! Echoes of what the host sent itself, and answers that a person gave past it.

use super::harness::TestSession;
use super::takeover::desk;
use serde_json::json;
use tandem_record::conversation::{SentMessage, SessionCommand, SessionEventBody as Body};

impl TestSession {
    /// The network reports a text of the agent's account. Says whether it was taken for a person's.
    fn is_persons(&mut self, id: &str, text: &str) -> bool {
        let recorded = |body: &Body| matches!(body, Body::ExternalReplyRecorded { .. });
        let before = self.count(recorded);
        let command = SessionCommand::RecordExternalReply {
            message_id: id.into(),
            text: text.to_owned(),
            sent_at: self.now,
        };
        self.command(command).expect("not refused");
        self.count(recorded) > before
    }
}

fn watched() -> TestSession {
    desk(json!({"hitl": {"takeover": {"onExternalReply": true}}}))
}

fn with_id(id: &str) -> SentMessage {
    SentMessage {
        provider_message_id: Some(id.to_owned()),
        ..SentMessage::default()
    }
}

/// Z-235 (half: a send of this host is known by its id), Z-111 (half: its own ids)
#[test]
fn echo_with_the_id_of_a_send_is_dropped() {
    let mut desk = watched();
    desk.sent_messages.push_back(with_id("w-1"));
    desk.say("hi");
    desk.wait_seconds(600);
    assert!(!desk.is_persons("w-1", "whatever the network makes of it"));
    assert!(!desk.state().is_taken_over());
    assert!(
        desk.is_persons("w-2", "model speaks"),
        "somebody repeats it"
    );
    assert!(desk.state().is_taken_over());
}

/// Z-235 (half: an echo that overtakes the answer to the send is known by its text)
#[test]
fn echo_that_comes_before_its_id_is_dropped() {
    let mut desk = watched();
    desk.held = vec!["session.send"];
    desk.say("hi");
    assert!(!desk.is_persons("w-1", "model speaks"));
    assert!(desk.is_persons("w-2", "I speak."));
    let mut desk = watched();
    desk.say("hi");
    assert!(!desk.is_persons("w-1", "model speaks"), "a moment ago");
    desk.wait_seconds(61);
    assert!(desk.is_persons("w-2", "model speaks"), "long ago");
}
