//! How turns and sessions end, and the timers a session needs.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::state::{ChatSession, ConsumedOutcome, Turn};
use super::turn::Next;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{
    CodeCall, FlowOrigin, FlowPause, HookStage, ResponseSource, SessionEnd,
    SessionEventBody as Body, SessionReply, SessionTimer, TurnCause, TurnOutcome,
};
use tandem_record::{FlowId, InterruptId, Timestamp};

impl ChatSession {
    /// The timers the state requires.
    pub fn required_timers(&self) -> BTreeMap<SessionTimer, Timestamp> {
        let mut timers = BTreeMap::new();
        if self.ended.is_some() {
            return timers;
        }
        if let Some(pause) = self.flow.as_ref().and_then(|flow| flow.pause.as_ref())
            && let Some(deadline) = pause.deadline()
            && !self.has_deadline_turn(pause.interrupt_id())
        {
            let id = pause.interrupt_id().clone();
            timers.insert(SessionTimer::Interrupt { id }, deadline);
        }
        for escalation in self.escalations.values().filter(|e| e.is_open()) {
            if let Some(deadline) = escalation.deadline {
                let id = escalation.id.clone();
                timers.insert(SessionTimer::Escalation { id }, deadline);
            }
        }
        if let Some(due) = self.idle_at() {
            timers.insert(SessionTimer::Idle, due);
        }
        timers
    }

    /// A turn for this deadline waits or is under way.
    fn has_deadline_turn(&self, interrupt: &InterruptId) -> bool {
        let is_of = |cause: &TurnCause| matches!(cause, TurnCause::Deadline { interrupt: of } if of == interrupt);
        self.turn.iter().any(|turn| is_of(&turn.cause))
            || self.waiting.iter().any(|waiting| is_of(&waiting.cause))
    }

    /// When the session ends for lack of messages. Never while a person or a deadline is awaited, or
    /// while a turn is under way.
    fn idle_at(&self) -> Option<Timestamp> {
        let is_busy = self.turn.is_some() || !self.waiting.is_empty();
        let pause = self.flow.as_ref().and_then(|flow| flow.pause.as_ref());
        let is_awaited = pause.is_some_and(FlowPause::is_interrupt);
        if is_busy || is_awaited || self.attached_escalation().is_some() {
            return None;
        }
        Some(self.last_active_at.plus_ms(self.start.idle_timeout_ms))
    }

    /// Whether the session has been idle for too long.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.ended.is_none() && self.idle_at().is_some_and(|due| due <= now)
    }

    pub fn turn_id(&self, number: u64) -> String {
        self.id().turn_id(number)
    }

    pub fn request_id(&self, number: u64) -> String {
        self.id().request_id(number)
    }
}

impl Draft<'_> {
    /// Ends the turn; whatever it wrote is committed with this.
    pub(super) fn end_turn(&mut self, outcome: TurnOutcome) {
        let turn = self.turn().clone();
        if let Some(call) = self.report_of(&turn) {
            self.emit(Body::ReportQueued { call });
        }
        self.emit(Body::TurnEnded(outcome));
        if let Some(reason) = turn.ends_session {
            self.end_session(reason);
        }
        self.start_report();
    }

    /// What `onResponse` is told about a turn, if it is told anything.
    fn report_of(&self, turn: &Turn) -> Option<CodeCall> {
        if !self.cx.agent.hooks.on_response || turn.candidates == 0 {
            return None;
        }
        let structured = match (turn.source, &turn.structured) {
            (ResponseSource::Classic, Some(structured)) => structured.clone(),
            (ResponseSource::Classic, None) => return None,
            _ => json!({"reply": turn.texts.join("\n"), "replies": turn.texts}),
        };
        let state = match (self.session.hitl_mode(), turn.consumed) {
            (Some(mode), _) => mode,
            (None, Some(ConsumedOutcome::Resolved)) => "resolved",
            (None, Some(ConsumedOutcome::TimedOut)) => "timed_out",
            (None, None) => "none",
        };
        let mut meta = json!({
            "source": turn.source,
            "policy": {
                "beforeLLMAction": turn.before_llm_action,
                "beforeResponseAction": turn.before_response_action,
            },
            "hitlState": state,
            "turnId": self.session.turn_id(turn.number),
            "requestId": self.session.request_id(turn.number),
        });
        if let Some(flow) = &turn.flow_id {
            meta["flowId"] = json!(flow);
        }
        if let Some(run) = &turn.flow_run {
            meta["flowRunId"] = json!(run);
        }
        if let Some(escalation) = self.session.attached_escalation() {
            meta["escalationId"] = json!(escalation.id);
        }
        Some(CodeCall {
            path: HookStage::OnResponse.as_str().to_owned(),
            // The context comes between them when the function is called.
            args: vec![structured, meta],
            timeout_ms: self.cx.agent.timeouts.hook_ms,
        })
    }

    /// Ends the session with everything that is open in it.
    pub(super) fn end_session(&mut self, reason: SessionEnd) {
        let flow_reason = match reason {
            SessionEnd::Idle => "session_idle",
            _ => "session_ended",
        };
        if self.session.flow.is_some() {
            self.end_flow(Some(flow_reason), true);
        }
        let open = self.session.escalations.values().filter(|e| e.is_open());
        let ids: Vec<_> = open.map(|e| e.id.clone()).collect();
        for escalation_id in ids {
            self.emit(Body::EscalationCanceled {
                escalation_id,
                reason: "session_ended".to_owned(),
            });
        }
        self.emit(Body::SessionEnded { reason });
    }

    /// A deadline passed: the flow gets a turn for it.
    pub(super) fn queue_deadline(&mut self, interrupt: &InterruptId) {
        let timer = SessionTimer::Interrupt {
            id: interrupt.clone(),
        };
        let due = self.session.required_timers().get(&timer).copied();
        if due.is_some_and(|due| due <= self.now) {
            self.emit(Body::TurnQueued {
                cause: TurnCause::Deadline {
                    interrupt: interrupt.clone(),
                },
            });
        }
    }

    /// An admin starts a flow.
    pub(super) fn queue_flow_start(
        &mut self,
        flow: &FlowId,
        input: Option<Value>,
    ) -> Result<SessionReply, SessionRefusal> {
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        if !self.cx.agent.flows.contains_key(flow.as_str()) {
            return Err(SessionRefusal::UnknownFlow(flow.to_string()));
        }
        if self.session.flow.is_some() || self.session.hitl_mode().is_some() {
            return Err(SessionRefusal::FlowActive);
        }
        self.check_flow_input(flow, input.as_ref())
            .map_err(SessionRefusal::InvalidInput)?;
        self.emit(Body::TurnQueued {
            cause: TurnCause::StartFlow {
                flow: flow.clone(),
                input,
            },
        });
        let turn = self.session.last_turn;
        Ok(SessionReply::Accepted { turn })
    }

    /// The turn that starts the flow an admin asked for.
    pub(super) fn start_requested_flow(&mut self, flow: &FlowId, input: Option<Value>) -> Next {
        if self.session.flow.is_some() {
            self.emit(Body::FlowStartRefused {
                reason: "flow_active".to_owned(),
            });
            return Next::DONE;
        }
        let started = self.start_flow(flow, input, FlowOrigin::Api);
        started.unwrap_or(Next::DONE)
    }

    pub(super) fn abort_flow(&mut self) -> Result<SessionReply, SessionRefusal> {
        if self.session.flow.is_none() {
            return Err(SessionRefusal::NoFlow);
        }
        self.end_flow(Some("aborted"), true);
        Ok(SessionReply::Done)
    }
}
