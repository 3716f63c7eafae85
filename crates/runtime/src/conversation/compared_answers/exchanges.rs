//! What people answered during takeovers, as the log tells it: messages of the user, each with the texts that answer
//! them.

use super::MAX_COMPARED;
use std::collections::VecDeque;
use tandem_record::conversation::{
    CandidateOrigin, InboundMessage, LedgerMessage, SessionEvent, SessionEventBody as Body,
    TakeoverOrigin,
};
use tandem_record::{EscalationId, MessageId, Recorded, Seq};

/// Messages of the user and what a person answered to them.
#[derive(Default)]
pub(super) struct Exchange {
    pub(super) escalation: Option<EscalationId>,
    /// The event before the first message; of the first one in a takeover the event before that.
    pub(super) before: Option<Seq>,
    pub(super) messages: Vec<InboundMessage>,
    pub(super) human: Vec<LedgerMessage>,
}

impl Exchange {
    /// The messages as one, as if they had come in one burst.
    pub(super) fn message(&self) -> Option<InboundMessage> {
        let last = self.messages.last()?;
        let texts: Vec<&str> = self.messages.iter().map(|m| m.body.as_str()).collect();
        Some(InboundMessage {
            message_id: MessageId::from(format!("compared:{}", last.message_id)),
            body: texts.join("\n"),
            ..last.clone()
        })
    }
}

/// Exchanges of a log, found event by event.
#[derive(Default)]
pub(super) struct Exchanges {
    takeover: Option<EscalationId>,
    /// The event before the last escalation.
    escalated_after: Option<Seq>,
    /// The event before the takeover, until the first message during it.
    taken_after: Option<Seq>,
    open: Exchange,
    last: Option<Seq>,
    found: VecDeque<Exchange>,
}

impl Exchanges {
    pub(super) fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        match &recorded.event.body {
            Body::MessageReceived { message, .. } => {
                if !self.open.human.is_empty() {
                    self.close();
                }
                if self.open.messages.is_empty() {
                    self.open.before = self.taken_after.take().or(self.last);
                }
                self.open.messages.push((**message).clone());
            }
            Body::EscalationCreated(_) => self.escalated_after = self.last,
            Body::LiveTakeoverStarted {
                escalation_id, by, ..
            } => {
                self.takeover = Some(escalation_id.clone());
                // A flow that asked for a person is at its effect then, and cannot take a message.
                let is_between = *by != TakeoverOrigin::Effect && self.open.messages.is_empty();
                self.taken_after = self.escalated_after.filter(|_| is_between);
            }
            Body::LiveTakeoverEnded { .. } => {
                self.close();
                (self.takeover, self.taken_after) = (None, None);
            }
            Body::ResponseQueued {
                message, candidate, ..
            } => {
                self.answered(message, candidate.origin == CandidateOrigin::Human);
            }
            Body::ExternalReplyRecorded { message, .. } => self.answered(message, true),
            _ => {}
        }
        self.last = Some(recorded.seq);
    }

    fn answered(&mut self, message: &LedgerMessage, by_person: bool) {
        match (&self.takeover, by_person) {
            (Some(escalation), true) => {
                self.open.escalation = Some(escalation.clone());
                self.open.human.push(message.clone());
            }
            // The agent has answered, or greets the user on behalf of the person who will come.
            (None, _) => self.open = Exchange::default(),
            (Some(_), false) => {}
        }
    }

    fn close(&mut self) {
        let exchange = std::mem::take(&mut self.open);
        if !exchange.human.is_empty() && !exchange.messages.is_empty() {
            self.found.push_back(exchange);
            if self.found.len() > MAX_COMPARED {
                self.found.pop_front();
            }
        }
    }

    pub(super) fn finish(mut self) -> VecDeque<Exchange> {
        self.close();
        self.found
    }
}
