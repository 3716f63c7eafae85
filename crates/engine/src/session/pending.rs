//! While somebody is awaited: what happens to the user's messages, and what happens when the time is up.

use super::draft::Draft;
use super::program::Resume;
use super::turn::Next;
use crate::agent::{AsyncPendingPolicy, ConfirmTimeoutBehavior};
use crate::flow::FlowError;
use serde_json::{Value, json};
use tandem_record::conversation::{
    CandidateOrigin, FlowPause, ResumedBy, SessionEventBody as Body, TurnCause, WaitFor,
};
use tandem_record::{InterruptId, Timestamp};

/// Bytes of the texts that a flow gets at once, as JSON: those that were queued, or joined to one answer. With the
/// largest decision of an admin they fit into one record of a journal (256 KiB).
pub(super) const MAX_TEXTS_BYTES: usize = 128 * 1024;

pub(super) fn json_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
}

impl Draft<'_> {
    /// A person is awaited: the message is stored, acknowledged or queued.
    pub(super) fn hold_message(&mut self) -> Next {
        if let Some(next) = self.cancel_wait() {
            return next;
        }
        let settings = &self.cx.agent.hitl.async_pending;
        let Some(message_id) = self.turn().cause.message().map(|m| m.message_id.clone()) else {
            return Next::DONE;
        };
        let is_replay = matches!(self.turn().cause, TurnCause::QueueReplay { .. });
        let is_full = self.session.queued.len() >= settings.max_queued || !self.fits_in_queue();
        let interval_ms = settings.ack_min_interval_seconds * 1_000;
        let last_ack = self.session.last_ack_at;
        let is_recent = last_ack.is_some_and(|at| at.plus_ms(interval_ms) > self.now);
        let behavior = match settings.policy {
            // What was queued once stays queued.
            _ if is_replay => "queue",
            AsyncPendingPolicy::Ack if is_recent => "noop",
            AsyncPendingPolicy::Noop => "noop",
            AsyncPendingPolicy::Ack => "ack",
            AsyncPendingPolicy::Queue if is_full => "refused",
            AsyncPendingPolicy::Queue => "queue",
        };
        self.emit(Body::PendingMessage {
            message_id,
            behavior: behavior.to_owned(),
        });
        match &settings.ack_text {
            Some(text) if behavior == "ack" => {
                self.respond(&text.clone(), CandidateOrigin::Ack, None)
            }
            _ => Next::DONE,
        }
    }

    /// The flow gets all queued texts with the result of its wait, which is one record of its journal.
    fn fits_in_queue(&self) -> bool {
        let queued = self.session.queued.iter();
        let bytes: usize = queued.map(|queued| json_bytes(&queued.message.body)).sum();
        bytes.saturating_add(json_bytes(self.turn().text())) <= MAX_TEXTS_BYTES
    }

    /// Whether a message would be held until somebody else has acted.
    fn is_holding(&self) -> bool {
        let pause = self.session.flow.as_ref().and_then(|f| f.pause.as_ref());
        match pause {
            Some(FlowPause::Wait { wait_for, .. }) => *wait_for != WaitFor::ConfirmResponse,
            Some(FlowPause::Workflow { .. }) => self.session.asked_workflow_question().is_none(),
            Some(FlowPause::ProxyWait { .. }) => true,
            Some(FlowPause::Ask { .. } | FlowPause::Confirm { .. }) => false,
            None => self.session.attached_escalation().is_some(),
        }
    }

    /// A hook answered or ended the turn of a message that would have been held.
    pub(super) fn note_held_silently(&mut self) {
        let message = self.turn().cause.message();
        let message_id = message.map(|message| message.message_id.clone());
        if let Some(message_id) = message_id.filter(|_| self.is_holding()) {
            self.emit(Body::PendingMessage {
                message_id,
                behavior: "noop".to_owned(),
            });
        }
    }

    /// The deadline of the interrupt the flow waits at has passed.
    pub(super) fn pass_deadline(&mut self, interrupt: &InterruptId) -> Next {
        if let Some(next) = self.time_out_approval(interrupt) {
            return next;
        }
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.clone());
        let Some(pause) = pause.filter(|pause| pause.interrupt_id() == interrupt) else {
            self.emit(Body::InterruptLate {
                interrupt_id: interrupt.clone(),
            });
            return Next::DONE;
        };
        if let Some(next) = self.leave_diverged() {
            return next;
        }
        match pause {
            FlowPause::Confirm { deadline, .. } => self.time_out_confirm(interrupt, deadline),
            FlowPause::Wait {
                wait_for,
                escalation_id,
                ..
            } => {
                let outcome = match wait_for {
                    WaitFor::Timeout => "elapsed",
                    _ => "timed_out",
                };
                let mut payload = json!({
                    "outcome": outcome,
                    "at": self.now.rfc3339(),
                    "queuedInbound": self.session.queued_inbound(),
                });
                if wait_for != WaitFor::Timeout {
                    payload["timedOut"] = json!(true);
                    payload["approved"] = json!(false);
                }
                if let Some(id) = &escalation_id {
                    payload["escalationId"] = json!(id);
                }
                self.leave_pause(interrupt, "wait", ResumedBy::Timeout, outcome, None);
                self.resume_flow(Resume::Value(Some(payload)))
            }
            FlowPause::Workflow { run_id, .. } => self.time_out_workflow(interrupt, &run_id),
            FlowPause::ProxyWait { proxy_id, .. } => self.time_out_proxy_wait(&proxy_id),
            FlowPause::Ask { .. } => Next::DONE,
        }
    }

    fn time_out_confirm(&mut self, interrupt: &InterruptId, deadline: Timestamp) -> Next {
        let behavior = self.cx.agent.hitl.confirm.timeout_behavior;
        let name = match behavior {
            ConfirmTimeoutBehavior::Decline => "decline",
            ConfirmTimeoutBehavior::EndFlow => "end_flow",
            ConfirmTimeoutBehavior::Throw => "throw",
        };
        self.emit(Body::ConfirmTimedOut {
            interrupt_id: interrupt.clone(),
            deadline,
            behavior: name.to_owned(),
        });
        let schema = self
            .awaited_confirm()
            .is_some_and(|c| c.response_schema.is_some());
        let by = ResumedBy::Timeout;
        self.leave_pause(interrupt, "confirm", by, "timed_out", None);
        match behavior {
            ConfirmTimeoutBehavior::Decline => {
                let value = if schema {
                    Value::Null
                } else {
                    Value::Bool(false)
                };
                self.resume_flow(Resume::Value(Some(value)))
            }
            ConfirmTimeoutBehavior::EndFlow => {
                self.end_flow(Some("confirm_timed_out"), false);
                Next::DONE
            }
            ConfirmTimeoutBehavior::Throw => {
                let error = FlowError::interrupt_timeout("nobody answered in time");
                self.resume_flow(Resume::Throw(error))
            }
        }
    }
}
