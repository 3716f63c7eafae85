//! Questions to people: confirmations, approvals of calls, escalations.

use crate::session::state::ChatSession;
use crate::session::turn_state::{ConsumedOutcome, PendingApproval};
use serde_json::json;
use tandem_record::conversation::{
    ApprovalAsked, EscalationMode, EscalationRecord, EscalationStatus, FlowPause, ResumedBy,
    SessionEvent, SessionEventBody as Body,
};
use tandem_record::{EscalationId, Timestamp};

/// Escalations kept after they were closed. The oldest is forgotten; the log has all.
const MAX_CLOSED: usize = 200;

impl ChatSession {
    pub(super) fn fold_question(&mut self, event: &SessionEvent, at: Timestamp) {
        match &event.body {
            Body::InterruptResumed {
                interrupt_id,
                kind,
                by,
                outcome,
                text,
            } => {
                self.note_consumed(*by);
                let run = event.flow.as_ref().map(|flow| &flow.flow_run_id);
                if let Some(flow) = &mut self.flow
                    && run.is_none_or(|run| *run == flow.run)
                {
                    let mut last = json!({
                        "id": interrupt_id, "kind": kind, "outcome": outcome, "at": at.rfc3339(),
                    });
                    if let Some(text) = text {
                        last["text"] = json!(text);
                    }
                    flow.last_interrupt = Some(last);
                }
            }
            Body::ConfirmUnrecognized { counted, .. } => self.count_reprompt(*counted),
            Body::ReminderSent { index, .. } => {
                let pause = self.flow.as_mut().and_then(|flow| flow.pause.as_mut());
                if let Some(FlowPause::Ask { reminded, .. } | FlowPause::Confirm { reminded, .. }) =
                    pause
                {
                    *reminded = index + 1;
                }
            }
            Body::ApprovalRequested(request) => {
                let Some(turn) = &self.turn else { return };
                self.approval = Some(PendingApproval {
                    request: (**request).clone(),
                    asked_at: at,
                    model: turn.model.clone(),
                });
            }
            Body::ApprovalDecided { .. } => {
                if let (Some(approval), Some(turn)) = (self.approval.take(), &mut self.turn) {
                    turn.model = approval.model;
                }
            }
            Body::EscalationCreated(escalation) => self.open_escalation(escalation),
            Body::EscalationVoted {
                escalation_id,
                vote,
            } => {
                if let Some(escalation) = self.escalations.get_mut(escalation_id) {
                    escalation.votes.push(vote.clone());
                }
            }
            Body::EscalationClaimed { .. }
            | Body::EscalationReleased { .. }
            | Body::EscalationAssigned { .. } => self.fold_desk_work(&event.body, at),
            Body::EscalationResolved {
                escalation_id,
                resolution,
                ..
            } => {
                self.close_escalation(escalation_id, EscalationStatus::Resolved);
                if let Some(escalation) = self.escalations.get_mut(escalation_id) {
                    escalation.resolution = Some(resolution.clone());
                }
            }
            Body::EscalationTimedOut { escalation_id, .. } => {
                self.close_escalation(escalation_id, EscalationStatus::TimedOut);
            }
            Body::EscalationCanceled {
                escalation_id,
                reason,
            } => {
                self.close_escalation(escalation_id, EscalationStatus::Canceled);
                if let Some(escalation) = self.escalations.get_mut(escalation_id) {
                    escalation.cancel_reason = Some(reason.clone());
                }
            }
            Body::EscalationDetached { escalation_id } => {
                if let Some(escalation) = self.escalations.get_mut(escalation_id) {
                    escalation.detached = true;
                    escalation.interrupt_id = None;
                }
                self.attached.take_if(|id| id == escalation_id);
            }
            _ => {}
        }
    }

    /// What the turn used: a decision of a person, or a deadline. A question that was called off gives neither.
    fn note_consumed(&mut self, by: ResumedBy) {
        let outcome = match by {
            ResumedBy::Canceled | ResumedBy::Stopped => return,
            ResumedBy::Timeout => ConsumedOutcome::TimedOut,
            ResumedBy::UserReply
            | ResumedBy::AdminResolution
            | ResumedBy::LiveHandback
            | ResumedBy::AdminInput
            | ResumedBy::Workflow => ConsumedOutcome::Resolved,
        };
        let asked = self.approval.as_ref().map(|a| &a.request.asked);
        let pause = self.flow.as_ref().and_then(|flow| flow.pause.as_ref());
        let escalation = match (asked, pause) {
            (Some(ApprovalAsked::Admin { escalation_id }), _) => Some(escalation_id.clone()),
            (None, Some(FlowPause::Wait { escalation_id, .. })) => escalation_id.clone(),
            _ => None,
        };
        if let Some(turn) = &mut self.turn {
            turn.consumed = Some(outcome);
            turn.escalation = escalation;
        }
    }

    fn count_reprompt(&mut self, counted: bool) {
        let pause = self.flow.as_mut().and_then(|flow| flow.pause.as_mut());
        let asked = self.approval.as_mut().map(|a| &mut a.request.asked);
        match (asked, pause) {
            (Some(ApprovalAsked::User { attempts, .. }), _)
            | (
                None,
                Some(FlowPause::Confirm { attempts, .. } | FlowPause::Wait { attempts, .. }),
            ) => {
                *attempts += u32::from(counted);
            }
            _ => {}
        }
    }

    fn open_escalation(&mut self, escalation: &EscalationRecord) {
        let id = escalation.id.clone();
        let is_of_flow = |flow: &&mut crate::session::ActiveFlow| {
            Some(flow.run_id()) == escalation.flow_run_id.as_ref()
        };
        if let Some(flow) = self.flow.as_mut().filter(is_of_flow) {
            flow.escalation = Some(id.clone());
        }
        if escalation.mode == EscalationMode::AsyncResolution {
            self.attached = Some(id.clone());
        }
        self.escalations.insert(id, escalation.clone());
        let closed = self.escalations.values().filter(|e| !e.is_open());
        if closed.clone().count() > MAX_CLOSED {
            let oldest = closed.min_by_key(|e| (e.created_at, e.id.clone()));
            if let Some(id) = oldest.map(|e| e.id.clone()) {
                self.escalations.remove(&id);
            }
        }
    }

    fn close_escalation(&mut self, id: &EscalationId, status: EscalationStatus) {
        if let Some(escalation) = self.escalations.get_mut(id) {
            escalation.status = status;
        }
        self.attached.take_if(|attached| attached == id);
    }
}
