//! How turns and sessions end, and the timers a session needs.

use super::draft::Draft;
use super::state::ChatSession;
use super::turn_state::Turn;
use crate::flow::{FlowEffect, Reminder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{
    CodeCall, FlowPause, HookStage, ResponseSource, SessionEnd, SessionEventBody as Body,
    SessionTimer, TakeoverEndReason, TakeoverEnding, TurnCause, TurnOutcome, WaitFor,
};
use tandem_record::{InterruptId, Object, Timestamp};

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
        timers.extend(self.bridge_deadline());
        if let Some(burst) = &self.burst {
            timers.insert(SessionTimer::Burst, burst.closes_at);
        }
        timers.extend(self.reminder_at());
        timers.extend(self.approval_deadline());
        timers.extend(self.takeover_idle_at());
        if let Some(due) = self.idle_at() {
            timers.insert(SessionTimer::Idle, due);
        }
        timers
    }

    /// Whether a turn waits or is under way for such a cause.
    pub(super) fn has_turn(&self, is_it: impl Fn(&TurnCause) -> bool) -> bool {
        self.turns_under_way().any(|turn| is_it(&turn.cause))
            || self.queued_turns().any(|waiting| is_it(&waiting.cause))
    }

    /// A turn for this deadline, or for the escalation it is about, waits or is under way.
    pub(super) fn has_deadline_turn(&self, interrupt: &InterruptId) -> bool {
        self.has_turn(|cause| match cause {
            TurnCause::Deadline { interrupt: of } => of == interrupt,
            TurnCause::EscalationClosed { escalation } => {
                self.waits_for(escalation).as_ref() == Some(interrupt)
            }
            TurnCause::EndTakeover(ending) => {
                self.waits_for(&ending.escalation).as_ref() == Some(interrupt)
            }
            TurnCause::ProxyClosed { interrupt: of, .. } => of == interrupt,
            TurnCause::ProxyEnding(ending) => {
                let waits = self.proxy_wait();
                waits.is_some_and(|(of, proxy)| of == interrupt && *proxy == ending.proxy)
            }
            _ => false,
        })
    }

    /// When the next reminder of the open question is due.
    fn reminder_at(&self) -> Option<(SessionTimer, Timestamp)> {
        let flow = self.flow.as_ref()?;
        let (id, asked_at, reminded) = match flow.pause.as_ref()? {
            FlowPause::Ask {
                interrupt_id,
                asked_at,
                reminded,
                ..
            }
            | FlowPause::Confirm {
                interrupt_id,
                asked_at,
                reminded,
                ..
            } => (interrupt_id, *asked_at, *reminded),
            FlowPause::Wait { .. } | FlowPause::Workflow { .. } | FlowPause::ProxyWait { .. } => {
                return None;
            }
        };
        let reminder = reminder_of(flow.current.as_ref()?, reminded)?;
        let index = reminded;
        let is_queued = self.has_turn(|cause| matches!(cause, TurnCause::Reminder { .. }));
        let timer = SessionTimer::Reminder {
            id: id.clone(),
            index,
        };
        (!is_queued).then(|| (timer, asked_at.plus_ms(reminder.after_ms)))
    }

    /// When the session ends for lack of messages. Never while a person or a deadline is awaited, or
    /// while a turn is under way.
    fn idle_at(&self) -> Option<Timestamp> {
        let is_busy = self.turn.is_some() || !self.waiting.is_empty() || self.burst.is_some();
        let pause = self.flow.as_ref().and_then(|flow| flow.pause.as_ref());
        let is_awaited = pause.is_some_and(|pause| match pause {
            FlowPause::Ask { .. } => false,
            FlowPause::Workflow { .. } | FlowPause::ProxyWait { .. } => true,
            FlowPause::Confirm { .. } | FlowPause::Wait { .. } => pause.deadline().is_some(),
        });
        let is_pending = self.attached_escalation().is_some()
            || self.approval.is_some()
            || self.takeover.is_some()
            || self.bridge.is_some();
        if is_busy || is_awaited || is_pending {
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

/// The reminder of a question with this index.
pub(super) fn reminder_of(effect: &Value, index: u32) -> Option<Reminder> {
    // Timers are determined often, and few questions have reminders.
    effect.get("reminders")?;
    let reminders = match FlowEffect::parse(effect).ok()? {
        FlowEffect::Ask { reminders, .. } => reminders,
        FlowEffect::Confirm(confirm) => confirm.reminders,
        _ => return None,
    };
    reminders.get(index as usize).cloned()
}

impl Draft<'_> {
    /// Ends the turn; whatever it wrote is committed with this.
    pub(super) fn end_turn(&mut self, outcome: TurnOutcome) {
        let turn = self.turn().clone();
        let outcome = match &turn.failure {
            Some(reason) if outcome == TurnOutcome::Processed => TurnOutcome::Failed {
                reason: reason.clone(),
            },
            _ => outcome,
        };
        if let Some(call) = self.report_of(&turn) {
            self.emit(Body::ReportQueued { call });
        }
        self.emit(Body::TurnEnded(outcome));
        if let Some(reason) = turn.ends_session {
            self.end_session(reason);
        }
        self.start_deferred_flow();
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
        let mut policy = Object::new();
        let actions = [
            ("beforeLLMAction", &turn.before_llm_action),
            ("beforeResponseAction", &turn.before_response_action),
        ];
        for (name, action) in actions {
            policy.extend(
                action
                    .as_ref()
                    .map(|action| (name.to_owned(), json!(action))),
            );
        }
        let mut meta = json!({
            "source": turn.source,
            "policy": policy,
            "hitlState": self.session.hitl_state_after(turn),
            "turnId": self.session.turn_id(turn.number),
            "requestId": self.session.request_id(turn.number),
        });
        if let Some(flow) = turn.flow() {
            meta["flowId"] = json!(flow.flow_id);
            meta["flowRunId"] = json!(flow.flow_run_id);
        }
        if let Some(escalation) = self.session.escalation_after(turn) {
            meta["escalationId"] = json!(escalation);
        }
        if let Some(bridge) = self.session.bridge() {
            meta["proxyId"] = json!(bridge.id);
        }
        if let Some(schedule) = turn.schedule_data(&self.session.start.user.external_user_id) {
            meta["schedule"] = schedule;
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
        const REASON: &str = "session_ended";
        let flow_reason = match reason {
            SessionEnd::Idle => "session_idle",
            _ => REASON,
        };
        while self.session.turn.is_some() {
            self.drop_pending_work();
            self.emit(Body::TurnEnded(TurnOutcome::Canceled {
                reason: REASON.to_owned(),
            }));
        }
        self.stop_bridge(REASON);
        if self.session.flow.is_some() {
            self.end_flow(Some(flow_reason), true);
        }
        let diverged: Vec<_> = self.session.diverged.keys().cloned().collect();
        for run in diverged {
            self.fail_diverged(&run, "replay_diverged");
        }
        self.close_approval();
        if let Some(takeover) = &self.session.takeover {
            let escalation = takeover.escalation.clone();
            self.note_takeover_end(&TakeoverEnding {
                escalation,
                reason: TakeoverEndReason::SessionEnded,
                note: None,
                actor: None,
            });
        }
        let open = self.session.escalations.values().filter(|e| e.is_open());
        let ids: Vec<_> = open.map(|e| e.id.clone()).collect();
        for escalation_id in ids {
            self.emit(Body::EscalationCanceled {
                escalation_id,
                reason: REASON.to_owned(),
            });
        }
        self.drop_drafts();
        self.withdraw_deferred_flows(REASON);
        self.drop_waiting(REASON);
        self.emit(Body::SessionEnded { reason });
    }

    /// Turns that wait do not take place.
    fn drop_waiting(&mut self, reason: &str) {
        if let Some(burst) = &self.session.burst {
            let ids = burst.messages.iter().map(|m| m.message_id.clone());
            let (number, message_ids) = (burst.number, ids.collect());
            let reason = reason.to_owned();
            self.emit(Body::TurnDropped {
                number,
                message_ids,
                reason,
            });
        }
        self.report_dropped_turns(reason);
        let waiting = self.session.waiting.iter();
        let waiting: Vec<_> = waiting.map(|w| (w.number, w.cause.message_ids())).collect();
        for (number, message_ids) in waiting {
            let reason = reason.to_owned();
            self.emit(Body::TurnDropped {
                number,
                message_ids,
                reason,
            });
        }
        let queued = self.session.queued.iter();
        let message_ids: Vec<_> = queued.map(|q| q.message.message_id.clone()).collect();
        if !message_ids.is_empty() {
            self.emit(Body::QueueConsumed { message_ids });
        }
    }

    /// A deadline passed: the flow gets a turn for it.
    pub(super) fn queue_deadline(&mut self, interrupt: &InterruptId) {
        let timer = SessionTimer::Interrupt {
            id: interrupt.clone(),
        };
        let due = self.session.required_timers().get(&timer).copied();
        if due.is_none_or(|due| due > self.now) {
            return;
        }
        // Nobody can decide what is overdue while the turn waits for its place.
        let pause = self
            .session
            .flow
            .as_ref()
            .and_then(|flow| flow.pause.clone());
        if let Some(FlowPause::Wait {
            escalation_id: Some(id),
            wait_for,
            ..
        }) = pause
        {
            self.close_as_timed_out(&id);
            if wait_for == WaitFor::LiveHandback {
                // The deadline of the wait is the takeover's own.
                return self.queue_takeover_end(TakeoverEndReason::Timeout);
            }
        }
        self.emit(Body::TurnQueued {
            cause: TurnCause::Deadline {
                interrupt: interrupt.clone(),
            },
        });
    }
}
