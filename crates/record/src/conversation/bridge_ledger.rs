//! What passed between the host and the desks of a session's bridges, as its events tell it.
//!
//! Input is shown from the moment it is queued, with what became of it. It is named by its id, so a ledger that begins
//! within a log leaves out what it has not seen the beginning of.

use super::{
    AdminActor, CandidateOrigin, HookStage, IntentStatus, ProxyDirection, SessionEvent,
    SessionEventBody as Body, TurnCause, TurnTrigger,
};
use crate::{EffectId, MessageId, ProxyId, Recorded, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;

/// The action that somebody is denied who may not write for a bridge.
const INPUT: &str = "hitl.proxy.input";
/// The stage of a failure when a bridge keeps too much.
const FULL_STAGE: &str = "proxy";
const ENDED: &str = "the bridge ended before";

/// Who wrote a text of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BridgeSide {
    /// The user, to the desk.
    User,
    /// Somebody at the desk.
    Desk,
    /// The host, to the desk.
    Host,
}

/// What became of a text of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BridgeOutcome {
    /// Its turn has not come.
    Waiting,
    /// Who wrote it has not the right.
    Denied,
    /// It waits until the flow waits for input.
    Kept,
    /// It went to the other side.
    Forwarded,
    /// Only the flow got it.
    NotForwarded,
    /// Nobody got it.
    Dropped,
}

/// One text that passed between the host and a desk.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeMessage {
    pub proxy: ProxyId,
    pub id: String,
    pub from: BridgeSide,
    /// For the desk as it was sent, from the desk as it was received.
    pub text: String,
    pub at: Timestamp,
    /// Who wrote at the desk, once that is known.
    pub actor: Option<AdminActor>,
    pub outcome: BridgeOutcome,
    pub decided_at: Option<Timestamp>,
    /// Why, where the flow or the host says so.
    pub reason: Option<String>,
    /// What the user was sent, where it is from the desk.
    pub forwarded_text: Option<String>,
    /// The flow's filter changed it.
    pub is_modified: bool,
    /// The delivery of the text that was sent.
    pub delivery: Option<IntentStatus>,
    sent_as: Option<EffectId>,
}

impl BridgeMessage {
    /// The id of the message of the conversation that this is on the user's side: the one that was forwarded to the
    /// desk, or the one that was made of input.
    pub fn user_side_id(&self) -> Option<&str> {
        match self.from {
            BridgeSide::User => Some(&self.id),
            BridgeSide::Desk => self.sent_as.as_ref().map(EffectId::as_str),
            BridgeSide::Host => None,
        }
    }
}

/// The texts of all bridges of a session, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BridgeLedger {
    pub messages: Vec<BridgeMessage>,
    has_begun: bool,
    /// Turns of bridges that have not begun: the input of each, if it has one.
    queued: VecDeque<Option<(ProxyId, MessageId)>>,
    /// The input that is decided about.
    current: Option<(ProxyId, MessageId)>,
    /// The last event is a text whose direction the next one tells.
    is_relaying: bool,
}

impl BridgeLedger {
    /// Whether the session had a bridge.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether no input waits for its turn or is decided about: what follows can be read by itself.
    pub fn is_settled(&self) -> bool {
        self.queued.is_empty() && self.current.is_none() && !self.is_relaying
    }

    /// The texts of one bridge.
    pub fn of<'a>(&'a self, proxy: &'a ProxyId) -> impl Iterator<Item = &'a BridgeMessage> {
        let is_of = move |message: &&BridgeMessage| message.proxy == *proxy;
        self.messages.iter().filter(is_of)
    }

    pub fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        let at = recorded.at;
        self.is_relaying = false;
        match &recorded.event.body {
            Body::TurnQueued { cause } => self.queue(cause, at),
            Body::TurnStarted {
                trigger: TurnTrigger::ProxyInput,
                ..
            } => self.current = self.queued.pop_front().flatten(),
            Body::TurnEnded(_) => self.current = None,
            Body::AuthorizationDecided(decision)
                if !decision.granted && decision.action == INPUT =>
            {
                let of_current = decision.proxy_id.as_ref();
                if self.current.as_ref().map(|(proxy, _)| proxy) == of_current {
                    self.decide(BridgeOutcome::Denied, decision.reason.as_deref(), at);
                    if let Some(message) = self.input() {
                        message.actor.clone_from(&decision.actor);
                    }
                }
            }
            Body::ProxyInputReceived {
                proxy_id,
                input,
                kept,
                ..
            } => {
                self.current = Some((proxy_id.clone(), input.id.clone()));
                let outcome = match kept {
                    true => BridgeOutcome::Kept,
                    false => BridgeOutcome::NotForwarded,
                };
                self.decide(outcome, None, at);
                if let Some(message) = self.input() {
                    message.actor.clone_from(&recorded.event.actor);
                }
            }
            Body::ProxyInputTaken { proxy_id, input_id } => {
                self.current = Some((proxy_id.clone(), input_id.clone()));
                self.decide(BridgeOutcome::NotForwarded, None, at);
            }
            Body::HookDecided {
                stage: HookStage::ProcessBeforeForward,
                decision,
            } => {
                let reason = decision.get("reason").and_then(Value::as_str);
                if let Some(message) = self.input() {
                    message.reason = reason.map(str::to_owned);
                }
            }
            Body::ResponseFailed { stage, reason, .. }
                if stage == FULL_STAGE || stage == HookStage::ProcessBeforeForward.as_str() =>
            {
                self.decide(BridgeOutcome::Dropped, Some(reason), at);
            }
            Body::ResponseQueued {
                effect_id,
                message,
                candidate,
                ..
            } if candidate.origin == CandidateOrigin::Proxy => {
                self.is_relaying = true;
                let proxy = effect_id.as_str().split(':').next().unwrap_or_default();
                self.messages.push(BridgeMessage {
                    proxy: ProxyId::from(proxy),
                    id: message.id.clone(),
                    from: BridgeSide::Host,
                    text: message.text.clone(),
                    at,
                    actor: None,
                    outcome: BridgeOutcome::Forwarded,
                    decided_at: Some(at),
                    reason: None,
                    forwarded_text: None,
                    is_modified: false,
                    delivery: Some(IntentStatus::Pending),
                    sent_as: Some(effect_id.clone()),
                });
            }
            Body::ProxyForwarded {
                proxy_id,
                direction,
                source_message_id,
                modified,
                effect_id,
            } => match direction {
                ProxyDirection::UserToAdmin => {
                    if let Some(message) = self.sent_as(effect_id) {
                        message.from = BridgeSide::User;
                        message.id = source_message_id.to_string();
                    }
                }
                ProxyDirection::AdminToUser => {
                    let key = (proxy_id.clone(), source_message_id.clone());
                    self.forward_input(key, effect_id, *modified, at);
                }
            },
            Body::ProxyStarted { .. } => self.has_begun = true,
            Body::ProxyStopped { proxy_id, .. } => self.end(proxy_id, at),
            Body::ResponseSent { effect_id, .. } => self.deliver(effect_id, IntentStatus::Sent),
            Body::SendFailed { effect_id, .. } => self.deliver(effect_id, IntentStatus::Failed),
            Body::ResponseSuppressed {
                effect_id: Some(effect_id),
                ..
            } => self.deliver(effect_id, IntentStatus::Suppressed),
            // Nothing else passes over a bridge.
            _ => {}
        }
    }

    fn queue(&mut self, cause: &TurnCause, at: Timestamp) {
        match cause {
            TurnCause::ProxyInput { proxy, input } => {
                self.queued
                    .push_back(Some((proxy.clone(), input.id.clone())));
                self.messages.push(BridgeMessage {
                    proxy: proxy.clone(),
                    id: input.id.to_string(),
                    from: BridgeSide::Desk,
                    text: input.text.clone(),
                    at,
                    actor: None,
                    outcome: BridgeOutcome::Waiting,
                    decided_at: None,
                    reason: None,
                    forwarded_text: None,
                    is_modified: false,
                    delivery: None,
                    sent_as: None,
                });
            }
            // Its turn begins like that of an input.
            TurnCause::ProxyClosed {
                timed_out: false, ..
            } => self.queued.push_back(None),
            _ => {}
        }
    }

    /// The input that is decided about.
    fn input(&mut self) -> Option<&mut BridgeMessage> {
        let (proxy, id) = self.current.as_ref()?;
        let mut newest = self.messages.iter_mut().rev();
        newest.find(|message| {
            let is_input = message.from == BridgeSide::Desk && message.proxy == *proxy;
            is_input && message.id == id.as_str()
        })
    }

    fn sent_as(&mut self, effect: &EffectId) -> Option<&mut BridgeMessage> {
        let mut newest = self.messages.iter_mut().rev();
        newest.find(|message| message.sent_as.as_ref() == Some(effect))
    }

    fn decide(&mut self, outcome: BridgeOutcome, reason: Option<&str>, at: Timestamp) {
        if let Some(message) = self.input() {
            message.outcome = outcome;
            message.decided_at = Some(at);
            message.reason = reason.map(str::to_owned);
        }
    }

    /// The text for the user belongs to the input that it was made of.
    fn forward_input(
        &mut self,
        input: (ProxyId, MessageId),
        effect: &EffectId,
        modified: bool,
        at: Timestamp,
    ) {
        let mut newest = self.messages.iter();
        let sent = newest.rposition(|message| message.sent_as.as_ref() == Some(effect));
        let sent = sent.map(|at| self.messages.remove(at));
        self.current = Some(input);
        if let Some(message) = self.input() {
            message.outcome = BridgeOutcome::Forwarded;
            message.decided_at = Some(at);
            message.is_modified = modified;
            message.delivery = sent.as_ref().and_then(|sent| sent.delivery);
            message.forwarded_text = sent.map(|sent| sent.text);
            message.sent_as = Some(effect.clone());
        }
    }

    /// What waits or is kept reaches nobody any more.
    fn end(&mut self, proxy: &ProxyId, at: Timestamp) {
        for message in &mut self.messages {
            let is_open = matches!(
                message.outcome,
                BridgeOutcome::Waiting | BridgeOutcome::Kept
            );
            if is_open && message.proxy == *proxy {
                message.outcome = BridgeOutcome::Dropped;
                message.decided_at = Some(at);
                message.reason = Some(ENDED.to_owned());
            }
        }
    }

    fn deliver(&mut self, effect: &EffectId, status: IntentStatus) {
        if let Some(message) = self.sent_as(effect) {
            message.delivery = Some(status);
        }
    }
}
