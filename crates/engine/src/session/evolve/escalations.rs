//! Questions to people: confirmations, approvals of calls, escalations.

use crate::session::state::ChatSession;
use crate::session::turn_state::{ConsumedOutcome, PendingApproval};
use serde_json::json;
use tandem_record::conversation::{
    ApprovalAsked, EscalationRecord, EscalationStatus, FlowPause, ResumedBy, SessionEvent,
    SessionEventBody as Body,
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
                if let Some(turn) = &mut self.turn {
                    turn.consumed = Some(match by {
                        ResumedBy::Timeout => ConsumedOutcome::TimedOut,
                        _ => ConsumedOutcome::Resolved,
                    });
                }
                if let Some(flow) = &mut self.flow {
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

    fn count_reprompt(&mut self, counted: bool) {
        let pause = self.flow.as_mut().and_then(|flow| flow.pause.as_mut());
        let asked = self.approval.as_mut().map(|a| &mut a.request.asked);
        match (asked, pause) {
            (Some(ApprovalAsked::User { attempts, .. }), _)
            | (None, Some(FlowPause::Confirm { attempts, .. })) => *attempts += u32::from(counted),
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
        self.attached = Some(id.clone());
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
