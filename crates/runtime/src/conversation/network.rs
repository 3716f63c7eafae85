//! What transports deliver to conversations, and what they show besides texts: signs of life, questions.

use super::session_machine::SessionMachine;
use super::settings::SessionSettings;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_engine::machine::Decision;
use tandem_record::conversation::{SessionEventBody as Body, TurnTrigger};
use tandem_record::{EffectId, InterruptId, MessageId, NodeId, Owner, RunId, Timestamp};

/// A request that arrived at the route of a transport.
#[derive(Debug, Clone, Copy)]
pub struct TransportRequest<'a> {
    /// Names in lower case.
    pub headers: &'a BTreeMap<String, String>,
    pub body: &'a [u8],
    pub now: Timestamp,
}

/// What a network delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct TransportDelivery {
    /// Whose conversations they belong to.
    pub owner: Owner,
    pub messages: Vec<TransportMessage>,
    /// Messages that somebody wrote from the agent's own account, past this host (Z-235).
    pub own_account: Vec<OwnAccountMessage>,
    /// What somebody decided on the network.
    pub decision: Option<NetworkDecision>,
    /// The text that the network wants as an answer, instead of what became of each message.
    pub reply: Option<String>,
    /// The network delivers again what is answered with an error.
    pub redelivers: bool,
}

impl TransportDelivery {
    /// Of a request that carries nothing.
    pub fn nothing(owner: Owner) -> Self {
        Self {
            owner,
            messages: Vec::new(),
            own_account: Vec::new(),
            decision: None,
            reply: None,
            redelivers: false,
        }
    }
}

/// A message from the agent's own account that is not one of this host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnAccountMessage {
    pub message_id: String,
    /// The user it was written to.
    pub to: String,
    pub body: String,
    pub sent_at: Timestamp,
}

/// Somebody on the network approves or rejects what a notice asked for. Who they are was verified by the network;
/// what they may do was not checked.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkDecision {
    pub question: InterruptId,
    /// Of what they saw.
    pub digest: Option<String>,
    /// Their address.
    pub by: String,
    pub approved: bool,
    /// Where the notice is, as the transport understands it.
    pub notice: Value,
}

/// What became of a decision, for those who see the notice.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownDecision {
    /// Where the notice is.
    pub notice: Value,
    /// Whoever decided.
    pub by: String,
    pub text: String,
    /// The question is closed: nobody needs to decide any more.
    pub is_final: bool,
}

/// An open question on its way to somebody outside.
#[derive(Debug, Clone, Copy)]
pub struct QuestionNotice<'a> {
    pub transport: &'a str,
    pub to: &'a str,
    pub question: &'a NoticeContent,
    /// Where it can be looked at, if the host makes links.
    pub link: Option<&'a str>,
    /// The same at every attempt.
    pub key: &'a EffectId,
    /// An earlier attempt may have reached the network.
    pub may_be_repeated: bool,
}

/// What a notice says.
#[derive(Debug, Clone, PartialEq)]
pub struct NoticeContent {
    /// What is needed, in two words.
    pub need: &'static str,
    /// Who or what asks, and for what.
    pub headline: String,
    /// What it is about.
    pub about: String,
    /// What else somebody has to know: names and values.
    pub facts: Vec<(&'static str, String)>,
    /// What a button decides; `None` where there is nothing to accept or reject.
    pub decided: Option<NoticeDecision>,
    /// What a link shows; `None` while there is no question that it could show.
    pub shown: Option<NoticeQuestion>,
    pub deadline: Option<Timestamp>,
    /// What to do, where there are no buttons.
    pub next: String,
}

/// The question that a button decides, as it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeDecision {
    pub question: InterruptId,
    /// Of what was shown; `None` where that never changes.
    pub digest: Option<String>,
}

/// A question as links name it. That of a session names the session as its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeQuestion {
    pub run: RunId,
    pub node: NodeId,
    pub interrupt: InterruptId,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TransportMessage {
    /// The network's own id; a fingerprint stands in for an absent one.
    pub message_id: Option<String>,
    pub from: String,
    pub body: String,
    pub kind: Option<String>,
    pub display_name: Option<String>,
    pub media: Option<Value>,
    /// The message it replies to.
    pub quoted_id: Option<String>,
    /// A bridge relayed it to here.
    pub relayed: bool,
    /// Part of the fingerprint: the same in every copy of the message.
    pub sent_at: Timestamp,
}

/// Why a request was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportRefusal {
    /// There is no such transport, or nothing is delivered to it.
    Unknown,
    /// A secret of the transport is not set.
    NotReady,
    /// It does not come from the network, or is too old.
    Unauthenticated,
    Invalid(String),
}

/// A sign to a user that their message is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeSign {
    pub transport: String,
    pub to: String,
    pub kind: LifeSignKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifeSignKind {
    /// An answer is being made, or is not any more.
    Typing { active: bool },
    /// The messages are processed now.
    Read { message_ids: Vec<MessageId> },
}

impl LifeSign {
    pub(super) fn to_user(
        session: &tandem_engine::session::ChatSession,
        kind: LifeSignKind,
    ) -> Self {
        let start = session.start();
        Self {
            transport: start.transport.clone(),
            to: start.address.clone(),
            kind,
        }
    }
}

/// Signs that follow from a committed decision (Z-244): its messages are read; a turn has ended, also a silent one.
pub(super) fn show_signs(settings: &SessionSettings, decision: &Decision<SessionMachine>) {
    let Some(session) = decision.after.session() else {
        return;
    };
    for event in &decision.events {
        let kind = match &event.event.body {
            Body::TurnStarted {
                trigger: TurnTrigger::Inbound,
                message_ids,
                ..
            } => LifeSignKind::Read {
                message_ids: message_ids.clone(),
            },
            Body::TurnEnded(_) => LifeSignKind::Typing { active: false },
            _ => continue,
        };
        let agent = &session.start().agent_id;
        let sign = LifeSign::to_user(session, kind);
        settings.agents.show_life_sign(agent, sign);
    }
}
