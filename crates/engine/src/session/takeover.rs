//! Live takeover: a person has the floor, from its start to the handback.
//!
//! Whatever starts it, it begins with the commit: what the agent says from then on is not sent, whichever way it was
//! made, and texts that were on their way are refused when they come to be sent. The user's messages go to the person.
//! Turns that would advance the flow wait, in their order, until it ends. Its end is a turn like any other, so that
//! nothing of it interleaves with a turn under way.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::program::Resume;
use super::takeover_state::HOST;
use super::turn::Next;
use crate::flow::FlowEffect;
use serde_json::Value;
use tandem_record::conversation::{
    ApprovalAsked, Author, CandidateOrigin, EndedTakeover, EscalationMode, EscalationRecord,
    EscalationResolution, FlowPause, LedgerMessage, MessageRole, ResumedBy,
    SessionEventBody as Body, SessionReply, SessionTimer, TakeoverDirection, TakeoverEndReason,
    TakeoverEnding, TakeoverOrigin, TurnCause, WaitFor,
};
use tandem_record::{EscalationId, MessageId, Timestamp};

/// Why a takeover's implicit escalation exists.
const OPERATOR: &str = "operator";
/// Stands for whoever answered past this host.
const EXTERNAL: &str = "external";
/// Why a text is not sent while a person has the floor.
pub(super) const SILENCED: &str = "live_takeover";

impl Draft<'_> {
    /// Opens an escalation that is a takeover from the start.
    pub(super) fn open_takeover(
        &mut self,
        mut escalation: EscalationRecord,
        by: TakeoverOrigin,
    ) -> EscalationId {
        let takes_it = matches!(by, TakeoverOrigin::Command | TakeoverOrigin::Api);
        if let Some(actor) = self.actor.as_ref().filter(|_| takes_it) {
            escalation.assignee = Some(actor.id.clone());
            escalation.claimed_at = Some(self.now);
        }
        let escalation_id = escalation.id.clone();
        self.emit(Body::EscalationCreated(Box::new(escalation)));
        self.emit(Body::LiveTakeoverStarted {
            escalation_id: escalation_id.clone(),
            by,
            idle_handback_ms: self.cx.agent.hitl.takeover.idle_handback_ms,
        });
        escalation_id
    }

    /// Whether conversations of the agent can be taken over: somebody may hand them back, and messages go somewhere.
    pub(super) fn has_takeover(&self) -> bool {
        self.cx.agent.admin_auth.is_some() && self.cx.agent.hitl.takeover.adapter.is_some()
    }

    /// An admin takes the floor. Doing it again changes nothing; a takeover that nobody holds becomes theirs.
    pub(super) fn take_over(&mut self, by: TakeoverOrigin) -> Result<SessionReply, SessionRefusal> {
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        if !self.has_takeover() {
            return Err(SessionRefusal::TakeoverUnavailable);
        }
        let Some(open) = self.session.takeover_escalation().cloned() else {
            let escalation = self.implicit_escalation(OPERATOR, EscalationMode::LiveTakeover);
            let id = self.open_takeover(escalation, by);
            return Ok(self.escalation_reply(&id));
        };
        let actor = self.actor_id();
        let holder = open.assignee.clone().filter(|_| open.claimed_at.is_some());
        match holder {
            Some(holder) if holder == actor => {}
            None if open.is_open() => self.record_claim(&open, actor),
            holder => return Err(SessionRefusal::TakeoverActive { holder }),
        }
        Ok(self.escalation_reply(&open.id))
    }

    /// A text to the user by the acting person.
    pub(super) fn send_takeover_message(
        &mut self,
        message_id: &MessageId,
        text: &str,
    ) -> Result<SessionReply, SessionRefusal> {
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        if self.session.takeover.is_none() {
            return Err(SessionRefusal::NoTakeover);
        }
        self.emit(Body::LiveTakeoverMessage {
            direction: TakeoverDirection::HumanToUser,
            message_id: message_id.clone(),
        });
        let to = self.session.start.address.clone();
        let author = self.human_author();
        self.queue_text(
            &to,
            super::respond::plain(text, CandidateOrigin::Human),
            author,
        );
        Ok(SessionReply::Done)
    }

    /// An admin gives the floor back. The turn that does it comes after those that wait already.
    pub(super) fn queue_handback(
        &mut self,
        note: Option<String>,
    ) -> Result<SessionReply, SessionRefusal> {
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        let actor = self.actor.clone();
        let ending = self.handback(note)?;
        if let Some(turn) = self.session.ending_turn() {
            return Ok(SessionReply::Accepted { turn });
        }
        self.queue_ending(TakeoverEnding { actor, ..ending });
        let turn = self.session.last_turn;
        Ok(SessionReply::Accepted { turn })
    }

    /// How the acting person ends the takeover. Refused where the agent could not answer the user then, also while a flow
    /// is active: nothing would speak after it (Z-237).
    pub(super) fn handback(&self, note: Option<String>) -> Result<TakeoverEnding, SessionRefusal> {
        let takeover = self.session.takeover.as_ref();
        let takeover = takeover.ok_or(SessionRefusal::NoTakeover)?;
        if self.cx.agent.model.is_none() {
            return Err(SessionRefusal::AgentUnavailable);
        }
        Ok(TakeoverEnding {
            escalation: takeover.escalation.clone(),
            reason: TakeoverEndReason::Handback,
            note: note.filter(|note| !note.trim().is_empty()),
            actor: self.actor.clone(),
        })
    }

    fn queue_ending(&mut self, ending: TakeoverEnding) {
        self.emit(Body::TurnQueued {
            cause: TurnCause::EndTakeover(Box::new(ending)),
        });
    }

    /// The takeover of this escalation ends by itself.
    pub(super) fn queue_takeover_end(&mut self, reason: TakeoverEndReason) {
        let takeover = self.session.takeover.as_ref();
        let escalation = takeover.map(|takeover| takeover.escalation.clone());
        if let Some(escalation) = escalation
            && self.session.ending_turn().is_none()
        {
            self.queue_ending(TakeoverEnding {
                escalation,
                reason,
                note: None,
                actor: None,
            });
        }
    }

    /// The person gave no sign for too long.
    pub(super) fn end_idle_takeover(&mut self) {
        if self.is_due(&SessionTimer::TakeoverIdle) {
            self.queue_takeover_end(TakeoverEndReason::Idle);
        }
    }

    /// Ends the takeover: its escalation is closed, turns that waited come next, the flow that waits for it goes on.
    pub(super) fn end_takeover(&mut self, ending: TakeoverEnding) -> Next {
        let takeover = self.session.takeover.as_ref();
        if takeover.is_none_or(|takeover| takeover.escalation != ending.escalation) {
            return Next::DONE;
        }
        self.actor.clone_from(&ending.actor);
        self.close_escalation_of(&ending);
        let payload = self.session.handback_payload(&ending, self.now);
        let reason = ending.reason;
        self.note_takeover_end(&ending);
        self.actor = None;
        self.drop_late_reminders();
        match self.wait_of_takeover(&ending.escalation) {
            Some(interrupt) => {
                if let Some(next) = self.leave_diverged() {
                    return next;
                }
                let by = match reason {
                    TakeoverEndReason::Timeout => ResumedBy::Timeout,
                    TakeoverEndReason::Canceled | TakeoverEndReason::SessionEnded => {
                        ResumedBy::Canceled
                    }
                    TakeoverEndReason::Handback | TakeoverEndReason::Idle => {
                        ResumedBy::LiveHandback
                    }
                };
                let outcome = payload["outcome"].as_str().unwrap_or_default().to_owned();
                self.leave_pause(&interrupt, "wait", by, &outcome, None);
                self.resume_flow(Resume::Value(Some(payload)))
            }
            None => self.reprompt_after_takeover(),
        }
    }

    /// Reminders that were held back with the deadline of their question remind nobody.
    fn drop_late_reminders(&mut self) {
        let waiting = self.session.waiting.iter();
        let late = waiting.filter(|waiting| match &waiting.cause {
            TurnCause::Reminder { interrupt, .. } => self.session.has_deadline_turn(interrupt),
            _ => false,
        });
        let late: Vec<u64> = late.map(|waiting| waiting.number).collect();
        for number in late {
            self.emit(Body::TurnDropped {
                number,
                message_ids: Vec::new(),
                reason: SILENCED.to_owned(),
            });
        }
    }

    /// Records the end. What waited takes place afterwards.
    pub(super) fn note_takeover_end(&mut self, ending: &TakeoverEnding) {
        let held = self.session.held.len();
        let entry = self.takeover_entry(ending);
        self.emit(Body::LiveTakeoverEnded(Box::new(EndedTakeover {
            escalation_id: ending.escalation.clone(),
            reason: ending.reason,
            note: ending.note.clone(),
            held_items: u32::try_from(held).unwrap_or(u32::MAX),
            entry,
        })));
    }

    /// A deadline has closed its escalation already, as the end of a session will.
    fn close_escalation_of(&mut self, ending: &TakeoverEnding) {
        let escalation_id = ending.escalation.clone();
        let known = self.session.escalations.get(&escalation_id);
        let Some(escalation) = known.filter(|escalation| escalation.is_open()) else {
            return;
        };
        let detached = escalation.detached;
        match ending.reason {
            TakeoverEndReason::Handback | TakeoverEndReason::Idle => {
                let actor = ending.actor.as_ref();
                let resolution = EscalationResolution {
                    approved: true,
                    message: ending.note.clone(),
                    action_data: None,
                    resolved_by: actor.map_or(HOST, |actor| &actor.id).to_owned(),
                    claimed_by: None,
                    resolved_at: self.now,
                    channel: actor.map_or(HOST, |actor| &actor.channel).to_owned(),
                };
                self.emit(Body::EscalationResolved {
                    escalation_id,
                    resolution,
                    detached,
                });
            }
            TakeoverEndReason::Canceled => {
                self.emit(Body::EscalationCanceled {
                    escalation_id,
                    reason: super::human::CANCELED.to_owned(),
                });
            }
            TakeoverEndReason::Timeout | TakeoverEndReason::SessionEnded => {}
        }
    }

    /// What the model is told of the stretch in which it did not speak.
    fn takeover_entry(&self, ending: &TakeoverEnding) -> LedgerMessage {
        let takeover = self.session.takeover.as_ref();
        let speakers = takeover.map(|takeover| takeover.speakers.join(", "));
        let holder = self.session.takeover_escalation();
        let holder = holder.and_then(|escalation| escalation.assignee.clone());
        let who = speakers.filter(|who| !who.is_empty()).or(holder);
        let who = who.map_or_else(String::new, |who| format!(" ({who})"));
        let from = takeover.map_or(self.now, |takeover| takeover.started_at);
        let mut text = format!(
            "A person{who} had the conversation from {} to {}, and you were silent.",
            from.rfc3339(),
            self.now.rfc3339()
        );
        if let Some(note) = &ending.note {
            text.push_str(" Their note to you: ");
            text.push_str(note);
        }
        LedgerMessage {
            id: format!("{}:{}", self.session.id(), self.session.next_seq()),
            role: MessageRole::Note,
            text,
            author: None,
            at: self.now,
        }
    }

    /// The wait of the active flow for the end of this takeover.
    fn wait_of_takeover(&self, id: &EscalationId) -> Option<tandem_record::InterruptId> {
        match self.session.wait_of(id)? {
            FlowPause::Wait {
                interrupt_id,
                wait_for: WaitFor::LiveHandback,
                ..
            } => Some(interrupt_id.clone()),
            _ => None,
        }
    }

    /// The question that was open all the time is asked again, where the agent wants that. One that came up during the
    /// takeover was not sent, and is asked now. One whose time is over is not.
    fn reprompt_after_takeover(&mut self) -> Next {
        let reprompts = self.cx.agent.hitl.takeover.reprompt_on_handback;
        if let Some(approval) = self.session.user_approval()
            && let ApprovalAsked::User { question, .. } = &approval.asked
        {
            if !reprompts || self.session.has_deadline_turn(&approval.interrupt_id) {
                return Next::DONE;
            }
            let question = question.clone();
            return self.respond(&question, CandidateOrigin::Confirm, None);
        }
        let Some(flow) = &self.session.flow else {
            return Next::DONE;
        };
        let Some(pause) = &flow.pause else {
            return Next::DONE;
        };
        if !matches!(pause, FlowPause::Ask { .. } | FlowPause::Confirm { .. }) {
            return Next::DONE;
        }
        let is_wanted = reprompts || flow.is_unasked;
        if !is_wanted || self.session.has_deadline_turn(pause.interrupt_id()) {
            return Next::DONE;
        }
        let effect = flow.current.as_ref();
        match effect.and_then(|effect| FlowEffect::parse(effect).ok()) {
            Some(FlowEffect::Ask { text, .. }) => self.respond(&text, CandidateOrigin::Ask, None),
            Some(FlowEffect::Confirm(confirm)) => {
                self.respond(&confirm.question, CandidateOrigin::Confirm, None)
            }
            _ => Next::DONE,
        }
    }

    /// Somebody answered the user from the agent's own account. It may be the start of a takeover.
    pub(super) fn note_external_reply(
        &mut self,
        message_id: &MessageId,
        text: &str,
        sent_at: Timestamp,
    ) -> Result<SessionReply, SessionRefusal> {
        const REASON: &str = "external_reply";
        let to = &self.session.start.address;
        let is_echo = self
            .session
            .sent_itself(message_id.as_str(), to, text, self.now);
        if is_echo {
            return Ok(SessionReply::Done);
        }
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        let takeover = &self.cx.agent.hitl.takeover;
        if takeover.on_external_reply && self.has_takeover() && self.session.takeover.is_none() {
            let escalation = self.implicit_escalation(REASON, EscalationMode::LiveTakeover);
            self.open_takeover(escalation, TakeoverOrigin::ExternalReply);
        }
        if self.session.takeover.is_some() {
            self.emit(Body::LiveTakeoverMessage {
                direction: TakeoverDirection::HumanToUser,
                message_id: message_id.clone(),
            });
        }
        let message = LedgerMessage {
            id: message_id.to_string(),
            role: MessageRole::Assistant,
            text: text.to_owned(),
            author: Some(Author {
                kind: "human".to_owned(),
                actor_id: EXTERNAL.to_owned(),
            }),
            at: sent_at,
        };
        self.emit(Body::ExternalReplyRecorded {
            message_id: message_id.clone(),
            message: Box::new(message),
        });
        Ok(SessionReply::Done)
    }

    /// Whether a text of the agent is held back now. The text that greets a takeover is not: the turn that asked for
    /// the person sends it.
    pub(super) fn is_silenced(&self, origin: CandidateOrigin) -> bool {
        let Some(takeover) = &self.session.takeover else {
            return false;
        };
        let turn = self.session.turn.as_ref().map(|turn| turn.number);
        let is_greeting = origin == CandidateOrigin::Ack
            && takeover.opened_in.is_some()
            && takeover.opened_in == turn;
        !is_greeting
    }

    /// Whether a text beside the response is held back now: unless a command sends it that is served during a takeover.
    pub(super) fn is_side_message_silenced(&self) -> bool {
        if self.session.takeover.is_none() {
            return false;
        }
        let Some(turn) = self.session.turn.as_ref() else {
            return true;
        };
        let text = turn.cause.message().map_or("", |m| m.body.as_str());
        let is_served = turn.is_command() && !self.goes_to_human(text);
        !(turn.is_admin_command() || is_served && !self.is_admin_line(text))
    }

    /// Whether a text is a command that needs an admin.
    fn is_admin_line(&self, text: &str) -> bool {
        let line = super::command_line::CommandLine::parse(text);
        line.is_some_and(|line| self.is_admin_command(&line.name))
    }

    /// What the flow gets that waits for the end of this takeover, where it diverged when the takeover ended.
    pub(super) fn earlier_handback_of(&self, id: &EscalationId) -> Option<Value> {
        self.wait_of_takeover(id).and(self.earlier_handback())
    }

    /// What a wait for the handback returns at once: the payload of a takeover that has ended in this run.
    pub(super) fn earlier_handback(&self) -> Option<Value> {
        self.session.flow.as_ref()?.handback.clone()
    }
}
