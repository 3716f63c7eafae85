//! Texts that a bridge relays, and what it tells its desk. Each has an id that names the bridge, the direction and the
//! message it comes from, so that it is one entry of the outbox however often it is decided.
//!
//! A person wrote them: no hook sees them, and the mode of the agent does not hold them back.

use super::draft::Draft;
use super::respond::plain;
use crate::ids::hex;
use sha2::{Digest, Sha256};
use tandem_record::conversation::{
    AdminActor, Author, CandidateOrigin, FlowPause, InboundMessage, LedgerMessage, MessageRole,
    Modality, ProxyBridge, ProxyDirection, ProxyInput, SendRequest, SessionEventBody as Body,
    SessionWork, TurnCause, WaitFor,
};
use tandem_record::{EffectId, MessageId, ProxyId};

pub(super) const NOT_DELIVERED: &str = "Not delivered: the message was not accepted.";
pub(super) const DENIED: &str = "Not delivered: you may not write here.";
pub(super) const FULL: &str = "Not delivered: too many messages wait already.";
pub(super) const GONE: &str = "Not delivered: this bridge has ended.";
/// Stands for a message without a text.
const ATTACHMENT: &str = "(attachment)";
/// Characters of a name in front of a text.
const MAX_LABEL: usize = 80;

/// A text on its way, in one direction.
struct RelayedText<'a> {
    id: EffectId,
    to: (&'a str, &'a str),
    text: String,
    author: Option<Author>,
    remembered: bool,
}

impl Draft<'_> {
    /// Relays the message of the turn to the desk, where the flow waits for nothing that keeps it from there. Says
    /// whether it did.
    pub(super) fn forward_user_message(&mut self, pause: Option<&FlowPause>) -> bool {
        let Some(bridge) = self.session.bridge().cloned() else {
            return false;
        };
        let is_replay = matches!(self.turn().cause, TurnCause::QueueReplay { .. });
        let is_relayed = match pause {
            // A replayed message answers no question: it comes back later.
            Some(FlowPause::Ask { .. } | FlowPause::Confirm { .. }) => !is_replay,
            Some(FlowPause::Wait { wait_for, .. }) => {
                *wait_for == WaitFor::ConfirmResponse && !is_replay
            }
            Some(FlowPause::Workflow { .. }) => false,
            Some(FlowPause::ProxyWait { .. }) | None => true,
        };
        let message = self.turn().cause.message().cloned();
        // What a bridge relayed to here is never relayed again.
        let message = message.filter(|message| !message.relayed);
        let (Some(message), true) = (message, is_relayed && bridge.flags.forward_user_messages)
        else {
            return false;
        };
        let label = format!(
            "[{} #{}] ",
            one_line(&self.session.start.user.display_name),
            bridge.id.short()
        );
        let text = self.text_for_desk(&message);
        let relayed = RelayedText {
            id: relayed_id(&bridge.id, "user", &message.message_id),
            to: (&bridge.transport, &bridge.address),
            text: prefixed(&label, bridge.flags.auto_prefix, &text),
            author: None,
            remembered: false,
        };
        let effect_id = relayed.id.clone();
        self.relay(relayed);
        self.emit(Body::ProxyForwarded {
            proxy_id: bridge.id,
            direction: ProxyDirection::UserToAdmin,
            source_message_id: message.message_id,
            modified: false,
            effect_id,
        });
        true
    }

    fn text_for_desk(&self, message: &InboundMessage) -> String {
        let text = self.turn().text();
        match text.trim().is_empty() && message.media.is_some() {
            true => ATTACHMENT.to_owned(),
            false => text.to_owned(),
        }
    }

    /// Relays what an admin wrote, or what the flow made of it.
    pub(super) fn forward_to_user(
        &mut self,
        bridge: &ProxyBridge,
        input: &ProxyInput,
        actor: &AdminActor,
        text: &str,
    ) {
        let label = bridge.label.as_deref().map(|label| format!("[{label}] "));
        let label = label.unwrap_or_default();
        let start = self.session.start.clone();
        let relayed = RelayedText {
            id: relayed_id(&bridge.id, "admin", &input.id),
            to: (&start.transport, &start.address),
            text: prefixed(&label, bridge.flags.auto_prefix, text),
            author: Some(Author {
                kind: "human".to_owned(),
                actor_id: actor.id.clone(),
            }),
            remembered: true,
        };
        let effect_id = relayed.id.clone();
        self.relay(relayed);
        self.emit(Body::ProxyForwarded {
            proxy_id: bridge.id.clone(),
            direction: ProxyDirection::AdminToUser,
            source_message_id: input.id.clone(),
            modified: text != input.text,
            effect_id,
        });
    }

    /// Tells the desk of the active bridge what became of its message.
    pub(super) fn tell_desk(&mut self, text: &str) {
        if let Some(bridge) = self.session.bridge().cloned() {
            let to = (bridge.transport.as_str(), bridge.address.as_str());
            self.tell_address(&bridge.id, to, text);
        }
    }

    pub(super) fn tell_address(&mut self, proxy: &ProxyId, to: (&str, &str), text: &str) {
        let next = self.session.next_seq();
        self.relay(RelayedText {
            id: EffectId::from(format!("{proxy}:notice:{next}")),
            to,
            text: format!("[#{}] {text}", proxy.short()),
            author: None,
            remembered: false,
        });
    }

    fn relay(&mut self, relayed: RelayedText<'_>) {
        let RelayedText {
            id,
            to: (transport, to),
            text,
            author,
            remembered,
        } = relayed;
        let request = SendRequest {
            transport: transport.to_owned(),
            to: to.to_owned(),
            text: text.clone(),
            modality: Modality::Text,
            attempts: 0,
            origin: Some(CandidateOrigin::Proxy),
            sent_parts: Vec::new(),
        };
        self.add_work(id.clone(), SessionWork::Send(request));
        let is_own = transport == self.session.start.transport;
        self.emit(Body::ResponseQueued {
            effect_id: id.clone(),
            to: to.to_owned(),
            message: LedgerMessage {
                id: id.to_string(),
                role: MessageRole::Assistant,
                text: text.clone(),
                author,
                at: self.now,
            },
            candidate: plain(&text, CandidateOrigin::Proxy),
            remembered,
            transport: (!is_own).then(|| transport.to_owned()),
        });
    }
}

/// One for each bridge, direction and message. It is sent as a header, so the message's own id, which may be any text,
/// is not part of it.
fn relayed_id(proxy: &ProxyId, from: &str, message: &MessageId) -> EffectId {
    let digest = Sha256::digest(message.as_str().as_bytes());
    EffectId::from(format!("{proxy}:{from}:{}", hex(&digest[..16])))
}

fn prefixed(label: &str, is_on: bool, text: &str) -> String {
    match is_on {
        true => format!("{label}{text}"),
        false => text.to_owned(),
    }
}

/// A name that people choose cannot look like the end of the label, or like another line.
fn one_line(name: &str) -> String {
    let shown = name.chars().take(MAX_LABEL);
    shown
        .map(|c| match c {
            '[' | ']' | '#' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}
