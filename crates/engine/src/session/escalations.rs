//! Decisions of admins about escalations, and their deadlines.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::program::Resume;
use super::state::ChatSession;
use super::turn::Next;
use serde_json::{Value, json};
use tandem_record::conversation::{
    ClosedEscalation, EscalationDecision, EscalationMode, EscalationRecord, EscalationResolution,
    EscalationStatus, EscalationVote, FlowPause, FlowRef, ResumedBy, SessionEventBody as Body,
    SessionReply, TakeoverEndReason, TurnCause,
};
use tandem_record::{EscalationId, InterruptId, RunId};

/// Bytes of the message and data of a decision, as JSON.
const MAX_DECISION_BYTES: usize = 64 * 1024;

impl Draft<'_> {
    /// The first decision wins. The same one again by the same actor is harmless.
    pub(super) fn resolve(
        &mut self,
        id: Option<&EscalationId>,
        decision: &EscalationDecision,
    ) -> Result<SessionReply, SessionRefusal> {
        let escalation = self.addressed_escalation(id)?;
        let actor_id = self.actor_id();
        if !escalation.is_open() {
            return match &escalation.resolution {
                Some(done) if repeats(done, decision, &actor_id) => {
                    Ok(SessionReply::Escalation(Box::new(escalation)))
                }
                _ => Err(self.closed_refusal(&escalation)),
            };
        }
        if escalation.mode == EscalationMode::LiveTakeover {
            let holder = escalation.assignee.clone();
            return Err(SessionRefusal::TakeoverActive { holder });
        }
        if !escalation.approvers.is_empty() && !escalation.approvers.contains(&actor_id) {
            return Err(SessionRefusal::NotAnApprover);
        }
        check_size(decision)?;
        self.check_approval_args(&escalation.id, decision.action_data.as_ref())?;
        if decision.approved && self.vote(&escalation, decision, &actor_id)? {
            return Ok(self.escalation_reply(&escalation.id));
        }
        let resolution = EscalationResolution {
            approved: decision.approved,
            message: decision.message.clone(),
            action_data: decision.action_data.clone(),
            resolved_by: actor_id,
            claimed_by: decision.claimed_by.clone(),
            resolved_at: self.now,
            channel: self
                .actor
                .as_ref()
                .map(|a| a.channel.clone())
                .unwrap_or_default(),
        };
        self.emit_about(
            &escalation,
            Body::EscalationResolved {
                escalation_id: escalation.id.clone(),
                resolution,
                detached: escalation.detached,
            },
        );
        self.answer_workflow_by(&escalation.id);
        if !self.queue_delivery(&escalation.id) && escalation.flow_run_id.is_none() {
            // Nobody waited for it; the agent answers again what was kept meanwhile.
            self.replay_queue();
        }
        Ok(self.escalation_reply(&escalation.id))
    }

    pub(super) fn actor_id(&self) -> String {
        self.actor
            .as_ref()
            .map(|actor| actor.id.clone())
            .unwrap_or_default()
    }

    /// Why nothing can be done with an escalation that is closed.
    pub(super) fn closed_refusal(&self, escalation: &EscalationRecord) -> SessionRefusal {
        match &escalation.resolution {
            None if self.session.ended.is_some() => SessionRefusal::Ended,
            _ => SessionRefusal::AlreadyResolved(Box::new(closed(escalation))),
        }
    }

    pub(super) fn escalation_reply(&self, id: &EscalationId) -> SessionReply {
        let after = self.session.escalations.get(id).cloned();
        let after = after.expect("a decided escalation stays known");
        SessionReply::Escalation(Box::new(after))
    }

    /// Counts an approval where several are needed. Says whether more are needed.
    fn vote(
        &mut self,
        escalation: &EscalationRecord,
        decision: &EscalationDecision,
        actor: &str,
    ) -> Result<bool, SessionRefusal> {
        if escalation.required_approvals <= 1 {
            return Ok(false);
        }
        if let Some(known) = escalation.votes.iter().find(|vote| vote.by == actor) {
            let is_same =
                known.message == decision.message && known.action_data == decision.action_data;
            return match is_same {
                true => Ok(true),
                false => Err(SessionRefusal::NotAnApprover),
            };
        }
        let vote = EscalationVote {
            by: actor.to_owned(),
            message: decision.message.clone(),
            action_data: decision.action_data.clone(),
            at: self.now,
        };
        let escalation_id = escalation.id.clone();
        self.emit_about(
            escalation,
            Body::EscalationVoted {
                escalation_id,
                vote,
            },
        );
        Ok(escalation.votes.len() as u32 + 1 < escalation.required_approvals)
    }

    fn addressed_escalation(
        &self,
        id: Option<&EscalationId>,
    ) -> Result<EscalationRecord, SessionRefusal> {
        if let Some(id) = id {
            let known = self.session.escalations.get(id).cloned();
            return known.ok_or(SessionRefusal::EscalationNotFound);
        }
        let session = &self.session;
        let shown = session.attached_escalation();
        if let Some(attached) = shown.or_else(|| session.takeover_escalation()) {
            return Ok(attached.clone());
        }
        let open: Vec<&EscalationRecord> =
            self.session.escalations().filter(|e| e.is_open()).collect();
        match open.as_slice() {
            [] if self.session.ended.is_some() => Err(SessionRefusal::Ended),
            [] => Err(SessionRefusal::EscalationNotFound),
            [one] => Ok((*one).clone()),
            several => {
                let ids = several.iter().map(|e| e.id.clone()).collect();
                Err(SessionRefusal::EscalationAmbiguous(ids))
            }
        }
    }

    /// Whoever waits for the escalation gets a turn, unless it is over for them already. Says whether
    /// somebody waits.
    fn queue_delivery(&mut self, id: &EscalationId) -> bool {
        let interrupt = self.session.waits_for(id);
        let waits = interrupt.is_some() || self.session.approval_of(id).is_some();
        let is_over = self.session.has_turn(|cause| match cause {
            TurnCause::Deadline { interrupt: of } => Some(of) == interrupt.as_ref(),
            TurnCause::EscalationClosed { escalation } => escalation == id,
            _ => false,
        });
        if waits && !is_over {
            self.emit(Body::TurnQueued {
                cause: TurnCause::EscalationClosed {
                    escalation: id.clone(),
                },
            });
        }
        waits
    }

    /// Drafts an event about an escalation. It names the flow that opened it and, between turns, the
    /// turn that follows from it.
    fn emit_about(&mut self, escalation: &EscalationRecord, body: Body) {
        let waits = self.session.waits_for(&escalation.id).is_some()
            || self.session.approval_of(&escalation.id).is_some();
        let (flow_id, flow_run_id) = (escalation.flow_id.clone(), escalation.flow_run_id.clone());
        let flow = flow_id.zip(flow_run_id);
        let flow = flow.map(|(flow_id, flow_run_id)| FlowRef {
            flow_id,
            flow_run_id,
        });
        self.caused_turn = Some(self.session.last_turn + u64::from(waits));
        self.emit_for(flow, body);
        self.caused_turn = None;
    }

    /// The turn that hands the decision to the flow.
    pub(super) fn deliver_resolution(&mut self, id: &EscalationId) -> Next {
        let Some(escalation) = self.session.escalations.get(id).cloned() else {
            return Next::DONE;
        };
        if let Some(next) = self.deliver_approval(&escalation) {
            return next;
        }
        let Some(interrupt) = self.session.waits_for(id) else {
            self.replay_queue();
            return Next::DONE;
        };
        if let Some(next) = self.leave_diverged() {
            return next;
        }
        let (payload, by) = match self.earlier_handback_of(id) {
            Some(payload) => (payload, ResumedBy::LiveHandback),
            None => (
                self.resolution_payload(&escalation),
                resumed_by(escalation.status),
            ),
        };
        let outcome = payload["outcome"].as_str().unwrap_or_default().to_owned();
        self.leave_pause(&interrupt, "wait", by, &outcome, None);
        self.resume_flow(Resume::Value(Some(payload)))
    }

    /// What a wait for the escalation returns.
    pub(super) fn resolution_payload(&self, escalation: &EscalationRecord) -> Value {
        let queued = self.session.queued_inbound();
        match (&escalation.resolution, escalation.status) {
            (Some(done), _) => {
                let mut payload = json!({
                    "outcome": "resolved",
                    "escalationId": escalation.id,
                    "approved": done.approved,
                    "resolvedBy": done.resolved_by,
                    "resolvedAt": done.resolved_at.rfc3339(),
                    "queuedInbound": queued,
                });
                if let Some(message) = &done.message {
                    payload["message"] = json!(message);
                }
                if let Some(data) = &done.action_data {
                    payload["actionData"] = data.clone();
                }
                payload
            }
            (None, EscalationStatus::Canceled) => json!({
                "outcome": "canceled", "approved": false, "escalationId": escalation.id,
                "reason": escalation.cancel_reason,
            }),
            (None, _) => json!({
                "outcome": "timed_out", "timedOut": true, "approved": false,
                "escalationId": escalation.id, "at": self.now.rfc3339(), "queuedInbound": queued,
            }),
        }
    }

    /// The deadline of an escalation passed, also of one that no flow waits for.
    pub(super) fn time_out_escalation(&mut self, id: &EscalationId) {
        let due = self.session.escalations.get(id);
        let due = due.is_some_and(|e| e.is_open() && e.deadline.is_some_and(|at| at <= self.now));
        if due
            && self
                .session
                .takeover
                .as_ref()
                .is_some_and(|t| t.escalation == *id)
        {
            self.close_as_timed_out(id);
            self.queue_takeover_end(TakeoverEndReason::Timeout);
        } else if due {
            self.close_as_timed_out(id);
            if !self.queue_delivery(id) {
                self.replay_queue();
            }
        }
    }

    pub(super) fn close_as_timed_out(&mut self, id: &EscalationId) {
        let open = self.session.escalations.get(id).filter(|e| e.is_open());
        let Some(escalation) = open.cloned() else {
            return;
        };
        let deadline = escalation.deadline.unwrap_or(self.now);
        self.emit_about(
            &escalation,
            Body::EscalationTimedOut {
                escalation_id: id.clone(),
                deadline,
            },
        );
    }
}

impl ChatSession {
    /// The interrupt of the flow that waits for this escalation.
    pub(super) fn waits_for(&self, id: &EscalationId) -> Option<InterruptId> {
        self.wait_of(id).map(|pause| pause.interrupt_id().clone())
    }

    pub(super) fn open_escalation_of(&self, run: &RunId) -> Option<&EscalationRecord> {
        let mut all = self.escalations.values();
        all.find(|e| e.is_open() && e.flow_run_id.as_ref() == Some(run))
    }

    /// A person's answer is pending, so that nothing else may start.
    pub(super) fn has_open_interrupt(&self) -> bool {
        let pause = self.flow.as_ref().and_then(|flow| flow.pause.as_ref());
        pause.is_some_and(FlowPause::is_interrupt) || self.concerns_a_person()
    }

    /// The flow, if there is one, merely asks its user or sleeps.
    pub(super) fn waits_for_nobody_else(&self) -> bool {
        let pause = self.flow.as_ref().and_then(|flow| flow.pause.as_ref());
        let merely = |pause: &FlowPause| !pause.is_interrupt() || pause.is_sleep();
        pause.is_none_or(merely) && !self.concerns_a_person()
    }

    /// A person beside the user is asked, or takes part.
    fn concerns_a_person(&self) -> bool {
        self.attached_escalation().is_some()
            || self.approval.is_some()
            || self.takeover.is_some()
            || self.bridge.is_some()
    }

    /// No other flow may start.
    pub(super) fn is_occupied(&self) -> bool {
        self.flow.is_some() || self.has_open_interrupt()
    }

    /// Messages that wait for the end of the pause, as the flow sees them.
    pub(super) fn queued_inbound(&self) -> Value {
        let queued = self.queued.iter().map(|queued| {
            let message = &queued.message;
            json!({
                "messageId": message.message_id,
                "text": message.body,
                "receivedAt": message.received_at.rfc3339(),
            })
        });
        queued.collect()
    }
}

/// What ended a wait for an escalation.
pub(super) fn resumed_by(status: EscalationStatus) -> ResumedBy {
    match status {
        EscalationStatus::TimedOut => ResumedBy::Timeout,
        EscalationStatus::Canceled => ResumedBy::Canceled,
        EscalationStatus::Open | EscalationStatus::Resolved => ResumedBy::AdminResolution,
    }
}

/// What a decision says is handed to the flow as one record of its journal.
fn check_size(decision: &EscalationDecision) -> Result<(), SessionRefusal> {
    let message = serde_json::to_string(&decision.message);
    let data = serde_json::to_string(&decision.action_data);
    let bytes = [message, data]
        .into_iter()
        .map(|json| json.map_or(usize::MAX, |json| json.len()))
        .fold(0, usize::saturating_add);
    match bytes <= MAX_DECISION_BYTES {
        true => Ok(()),
        false => Err(SessionRefusal::DecisionTooLarge {
            limit: MAX_DECISION_BYTES,
        }),
    }
}

fn repeats(done: &EscalationResolution, decision: &EscalationDecision, actor: &str) -> bool {
    done.resolved_by == actor
        && done.approved == decision.approved
        && done.message == decision.message
        && done.action_data == decision.action_data
}

fn closed(escalation: &EscalationRecord) -> ClosedEscalation {
    let resolution = escalation.resolution.as_ref();
    ClosedEscalation {
        decided_by: resolution.map(|r| r.resolved_by.clone()),
        decided_at: resolution.map(|r| r.resolved_at),
        outcome: match resolution {
            Some(done) if done.approved => "approved",
            Some(_) => "rejected",
            None => escalation.status.as_str(),
        },
    }
}
