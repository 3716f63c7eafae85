//! Where the user's messages go during a takeover: to the person, and on to the chat of the desk.

use super::draft::Draft;
use super::keywords::KeywordList;
use super::turn::Next;
use crate::agent::TakeoverAdapter;
use crate::ids::hex;
use sha2::{Digest, Sha256};
use tandem_record::conversation::{
    CandidateOrigin, ForwardedText, Modality, SendRequest, SessionEventBody as Body, SessionWork,
    TakeoverDirection, TakeoverEndReason, TakeoverEnding, TurnCause,
};
use tandem_record::{EffectId, EscalationId};

impl Draft<'_> {
    /// Whether a text that the user typed goes to the person: also a command, unless it is still served.
    pub(super) fn goes_to_human(&self, text: &str) -> bool {
        let allowed = &self.cx.agent.hitl.takeover.allowed_commands;
        let line = super::command_line::CommandLine::parse(text);
        let is_served = line
            .is_some_and(|line| self.is_admin_command(&line.name) || allowed.contains(&line.name));
        self.session.takeover.is_some() && !is_served
    }

    /// Whether the message of the turn under way has to go to a person who took over meanwhile.
    pub(super) fn is_taken_from_agent(&self) -> bool {
        let cause = &self.turn().cause;
        self.session.takeover.is_some()
            && matches!(
                cause,
                TurnCause::Message { .. } | TurnCause::QueueReplay { .. }
            )
    }

    /// The person gets the user's message, and the turn ends.
    pub(super) fn route_to_human(&mut self) -> Next {
        if let Some(next) = self.cancel_takeover() {
            return next;
        }
        for message_id in self.turn().cause.message_ids() {
            self.emit(Body::LiveTakeoverMessage {
                direction: TakeoverDirection::UserToHuman,
                message_id,
            });
        }
        self.forward_to_desk();
        Next::DONE
    }

    /// The user gives up waiting for a person who has not come yet.
    fn cancel_takeover(&mut self) -> Option<Next> {
        // What follows would not wait for the turn that is set aside.
        if self.turn().is_beside || !self.gives_up(self.turn().text()) {
            return None;
        }
        let escalation = self.session.takeover_escalation()?.id.clone();
        Some(self.end_takeover(TakeoverEnding {
            escalation,
            reason: TakeoverEndReason::Canceled,
            note: None,
            actor: None,
        }))
    }

    /// Whether a text gives up the wait for a person who has not come yet.
    pub(super) fn gives_up(&self, text: &str) -> bool {
        let escalation = self.session.takeover_escalation();
        let is_unclaimed = escalation.is_some_and(|e| e.is_open() && e.claimed_at.is_none());
        let takeover = self.session.takeover.as_ref();
        let is_silent = takeover.is_some_and(|takeover| takeover.speakers.is_empty());
        let words = &self.cx.agent.hitl.user_cancel_keywords;
        let words = KeywordList::new(words.iter().map(String::as_str));
        is_unclaimed && is_silent && words.equals(text)
    }

    /// Passes the user's message on to the chat where the desk sits, if the agent names one.
    fn forward_to_desk(&mut self) {
        let hitl = &self.cx.agent.hitl;
        let Some(TakeoverAdapter::Target(key)) = &hitl.takeover.adapter else {
            return;
        };
        let Some(target) = hitl.targets.get(hitl.target_at(key, self.now)) else {
            return;
        };
        let start = &self.session.start;
        if target.transport == start.transport && target.address == start.address {
            // The user would be sent their own words.
            return;
        }
        let user = &start.user;
        let takeover = self.session.takeover.as_ref();
        let short = takeover.map_or_else(String::new, |takeover| {
            takeover_short_id(&takeover.escalation)
        });
        let text = format!("[{} #{short}] {}", user.display_name, self.turn().text());
        let (transport, to) = (target.transport.clone(), target.address.clone());
        let next = self.session.next_seq();
        let effect_id = EffectId::from(format!("{}:{next}", self.session.id()));
        let request = SendRequest {
            transport: transport.clone(),
            to: to.clone(),
            text: text.clone(),
            modality: Modality::Text,
            attempts: 0,
            origin: Some(CandidateOrigin::Forward),
            sent_parts: Vec::new(),
        };
        self.add_work(effect_id.clone(), SessionWork::Send(request));
        self.emit(Body::LiveTakeoverForwarded(Box::new(ForwardedText {
            effect_id,
            transport,
            to,
            text,
        })));
    }
}

/// Names a takeover in a chat where several may be under way.
pub fn takeover_short_id(escalation: &EscalationId) -> String {
    hex(&Sha256::digest(escalation.as_str().as_bytes())[..3])
}
