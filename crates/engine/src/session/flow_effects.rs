//! What each effect of a flow does.

use super::draft::Draft;
use super::drive_flow::Performed;
use super::program::Resume;
use super::turn::Next;
use crate::agent::EscalationFallback;
use crate::flow::effect::{ConfirmEffect, EscalateEffect, ToolErrorMode, WaitEffect};
use crate::flow::{FlowEffect, FlowError};
use serde_json::{Value, json};
use tandem_record::conversation::{
    CandidateOrigin, CodeError, CodeOutcome, EscalationMode, EscalationRecord, EscalationStatus,
    FlowOrigin, FlowPause, FlowRecord, SessionEventBody as Body, SessionWork, TakeoverOrigin,
    WaitFor, WorkPurpose,
};
use tandem_record::{EffectId, EscalationId, FlowId, InterruptId, RunId};
use tandem_schema::{MAX_WORK, Meter};

impl Draft<'_> {
    pub(super) fn perform_effect(
        &mut self,
        run: &RunId,
        step: u32,
        effect: FlowEffect,
    ) -> Performed {
        let interrupt_id = InterruptId::from(format!("{run}:{step}"));
        match effect {
            FlowEffect::Say { text } => self.perform_say(&text),
            // It asked for the person, and what the user writes goes there. A flow that somebody interrupts asks when it
            // is its turn again.
            FlowEffect::Ask { .. } | FlowEffect::Confirm(_) if self.asked_for_person(run) => {
                refuse("hitl_active", "a person has the conversation")
            }
            FlowEffect::Ask { key, text, .. } => {
                let candidate = self.prepare(&text, CandidateOrigin::Ask, None);
                self.pause_flow(FlowPause::Ask {
                    interrupt_id,
                    key: key.clone(),
                    asked_at: self.now,
                    reminded: 0,
                });
                Performed::Leave(self.pass_on(candidate))
            }
            FlowEffect::Tool {
                name,
                args,
                on_error,
            } => match self.perform_schedule_tool((run, step), &name, &args, on_error) {
                Some(performed) => performed,
                None => self.perform_tool(run, step, &name, Value::Object(args), on_error),
            },
            FlowEffect::Handoff { to, input } => {
                Performed::Leave(self.hand_off(&FlowId::from(to), input))
            }
            FlowEffect::End { reason } => {
                self.end_flow(reason.as_deref(), false);
                Performed::Leave(Next::DONE)
            }
            FlowEffect::Confirm(confirm) => self.perform_confirm(interrupt_id, &confirm),
            FlowEffect::Escalate(escalate) => self.perform_escalate(run, step, escalate),
            FlowEffect::Wait(wait) => self.perform_wait(interrupt_id, &wait),
            FlowEffect::ProxyStart(start) => self.perform_proxy_start(run, step, &start),
            FlowEffect::ProxyWait(wait) => self.perform_proxy_wait(interrupt_id, &wait),
            FlowEffect::ProxyStop { reason } => self.perform_proxy_stop(reason.as_deref()),
            FlowEffect::WorkflowRun(effect) => self.perform_workflow(run, step, effect),
        }
    }

    /// Whether the takeover under way is the run's own.
    fn asked_for_person(&self, run: &RunId) -> bool {
        let escalation = self.session.takeover_escalation();
        escalation.is_some_and(|escalation| escalation.flow_run_id.as_ref() == Some(run))
    }

    fn perform_say(&mut self, text: &str) -> Performed {
        match self.respond(text, CandidateOrigin::Say, None) {
            // The text needs nobody's consent: the code goes on in the same decision.
            Next::Finish(_) => Performed::Resume(Resume::Value(None)),
            next => Performed::Leave(next),
        }
    }

    /// Records what the flow waits for, on its run and on the session.
    pub(super) fn pause_flow(&mut self, pause: FlowPause) {
        let Some(run) = self.session.flow.as_ref().map(|flow| flow.run.clone()) else {
            return;
        };
        let effect = self
            .session
            .flow
            .as_ref()
            .and_then(|flow| flow.current.clone());
        self.record(
            &run,
            FlowRecord::Paused {
                pause: pause.clone(),
                question: effect.unwrap_or_default(),
            },
        );
        self.emit(Body::FlowPaused { pause });
    }

    fn perform_tool(
        &mut self,
        run: &RunId,
        step: u32,
        name: &str,
        args: Value,
        on_error: ToolErrorMode,
    ) -> Performed {
        if let Err(error) = self.check_tool(name, &args) {
            return Performed::Resume(tool_failure(name, &error, on_error));
        }
        // The id is the idempotency key of the call.
        let id = EffectId::from(format!("{run}:{step}"));
        let work = SessionWork::Tool {
            name: name.to_owned(),
            args,
        };
        self.request_as(id, WorkPurpose::FlowTool, work);
        Performed::Leave(Next::Wait)
    }

    /// Whether a tool exists and takes these arguments.
    pub(super) fn check_tool(&self, name: &str, args: &Value) -> Result<(), CodeError> {
        let Some(tool) = self.cx.agent.tools.iter().find(|tool| tool.name == name) else {
            return Err(CodeError {
                code: "not_found".to_owned(),
                message: format!("there is no tool {name}"),
            });
        };
        let schema = tool.parameters.as_ref();
        let errors = schema.map(|schema| schema.errors(args, &Meter::with_limit(MAX_WORK)));
        match errors.filter(|errors| !errors.is_empty()) {
            None => Ok(()),
            Some(errors) => Err(CodeError {
                code: "invalid_args".to_owned(),
                message: errors.join("; "),
            }),
        }
    }

    /// A tool of the flow answered.
    pub(super) fn finish_flow_tool(&mut self, done: &CodeOutcome) -> Next {
        let flow = self.session.flow.as_ref();
        let effect = flow.and_then(|flow| FlowEffect::parse(flow.current.as_ref()?).ok());
        let (name, on_error) = match effect {
            Some(FlowEffect::Tool { name, on_error, .. }) => (name, on_error),
            _ => (String::new(), ToolErrorMode::Throw),
        };
        let with = match &done.error {
            Some(error) => tool_failure(&name, error, on_error),
            None => Resume::Value(Some(done.value.clone().unwrap_or_default())),
        };
        self.resume_flow(with)
    }

    fn hand_off(&mut self, to: &FlowId, input: Option<Value>) -> Next {
        if !self.cx.agent.flows.contains_key(to.as_str()) {
            self.end_flow(Some("handoff_unknown_target"), false);
            return Next::Classic;
        }
        if self.turn().handoffs >= self.cx.agent.limits.max_handoffs_per_turn {
            let limit = self.cx.agent.limits.max_handoffs_per_turn;
            return self.fail_flow(tandem_record::conversation::FlowFailure {
                code: "flow_limit".to_owned(),
                message: format!("more than {limit} handoffs in one turn"),
                details: None,
            });
        }
        self.emit(Body::FlowHandoff { to: to.clone() });
        self.end_flow(Some("handoff"), false);
        let started = self.start_flow(to, input, FlowOrigin::Handoff);
        started.unwrap_or(Next::Classic)
    }

    fn perform_confirm(&mut self, interrupt_id: InterruptId, confirm: &ConfirmEffect) -> Performed {
        let timeout = confirm
            .timeout_ms
            .unwrap_or(self.cx.agent.hitl.confirm.timeout_ms);
        let deadline = self.now.plus_ms(timeout);
        let asked = self.emit(Body::ConfirmRequested {
            interrupt_id: interrupt_id.clone(),
            question: confirm.question.clone(),
            deadline,
            has_schema: confirm.response_schema.is_some(),
        });
        self.pause_flow(FlowPause::Confirm {
            interrupt_id: interrupt_id.clone(),
            attempts: 0,
            deadline,
            asked,
            asked_at: self.now,
            reminded: 0,
        });
        self.emit(Body::InterruptPaused {
            interrupt_id,
            kind: "confirm".to_owned(),
            wait_for: None,
            deadline: Some(deadline),
        });
        Performed::Leave(self.respond(&confirm.question, CandidateOrigin::Confirm, None))
    }

    fn perform_escalate(&mut self, run: &RunId, step: u32, escalate: EscalateEffect) -> Performed {
        if self.session.open_escalation_of(run).is_some() {
            return refuse(
                "escalation_open",
                "an escalation of this run is open already",
            );
        }
        let defaults = &self.cx.agent.hitl.escalation;
        let has_admins = self.cx.agent.admin_auth.is_some();
        let has_takeover = self.has_takeover();
        if let Some(open) = self.session.takeover_escalation()
            && escalate.mode == EscalationMode::LiveTakeover
        {
            // A person has the conversation already.
            return Performed::Resume(Resume::Value(Some(shown_escalation(open))));
        }
        let mode = match (escalate.mode, defaults.fallback) {
            (EscalationMode::AsyncResolution, _) if has_admins => EscalationMode::AsyncResolution,
            (EscalationMode::LiveTakeover, _) if has_takeover => EscalationMode::LiveTakeover,
            (EscalationMode::LiveTakeover, EscalationFallback::Retry) if has_admins => {
                EscalationMode::AsyncResolution
            }
            (_, fallback) => return self.escalation_unavailable(fallback),
        };
        let timeout = escalate.timeout_ms.unwrap_or(defaults.timeout_ms);
        let queue = escalate.queue.or_else(|| defaults.queue.clone());
        let ack = self.acknowledgement(mode);
        let escalation = EscalationRecord {
            id: EscalationId::from(format!("esc-{run}-{step}")),
            mode,
            reason: escalate.reason,
            priority: escalate.priority,
            metadata: escalate.metadata.map(Value::Object),
            flow_id: self.session.flow.as_ref().map(|flow| flow.flow.clone()),
            flow_run_id: Some(run.clone()),
            client_id: escalate.id,
            status: EscalationStatus::Open,
            detached: false,
            created_at: self.now,
            deadline: Some(self.escalation_deadline(mode, timeout)),
            resolution: None,
            interrupt_id: None,
            cancel_reason: None,
            required_approvals: escalate.required_approvals,
            approvers: escalate.approvers,
            votes: Vec::new(),
            context: self.escalation_context(),
            queue,
            assignee: escalate.assignee,
            claimed_at: None,
            stopped: None,
        };
        match mode {
            EscalationMode::LiveTakeover => {
                self.open_takeover(escalation, TakeoverOrigin::Effect);
            }
            EscalationMode::AsyncResolution => {
                self.emit(Body::EscalationCreated(Box::new(escalation)));
            }
        }
        match ack {
            None => self.after_escalate(),
            Some(text) => match self.respond(&text, CandidateOrigin::Ack, None) {
                Next::Finish(_) => self.after_escalate(),
                next => Performed::Leave(next),
            },
        }
    }

    /// The escalation exists and the user was told: the code goes on.
    fn after_escalate(&mut self) -> Performed {
        Performed::Resume(Resume::Value(self.escalate_result()))
    }

    /// What `interrupt.escalate` returns.
    pub(super) fn escalate_result(&self) -> Option<Value> {
        let id = self.session.flow.as_ref()?.escalation.as_ref()?;
        let escalation = self.session.escalations.get(id)?;
        Some(shown_escalation(escalation))
    }

    fn escalation_unavailable(&mut self, fallback: EscalationFallback) -> Performed {
        self.end_flow(Some("escalation_unavailable"), false);
        Performed::Leave(match fallback {
            EscalationFallback::Classic if self.turn().cause.message().is_some() => Next::Classic,
            _ => Next::DONE,
        })
    }

    fn perform_wait(&mut self, interrupt_id: InterruptId, wait: &WaitEffect) -> Performed {
        let flow = self.session.flow.as_ref();
        let escalation = flow.and_then(|flow| flow.escalation.clone());
        let escalation = escalation.and_then(|id| self.session.escalations.get(&id).cloned());
        // A takeover is handed back, not decided.
        let escalation = escalation.filter(|e| e.mode == EscalationMode::AsyncResolution);
        let own = wait.timeout_ms.map(|ms| self.now.plus_ms(ms));
        let mut left_ms = None;
        let (escalation_id, deadline) = match (wait.wait_for, &escalation) {
            (WaitFor::LiveHandback, _) if self.session.is_taken_over() => {
                let open = self.session.takeover_escalation();
                let deadline = match open.and_then(|open| open.stopped) {
                    Some(_) => {
                        left_ms = wait.timeout_ms;
                        None
                    }
                    None => [own, open.and_then(|open| open.deadline)]
                        .into_iter()
                        .flatten()
                        .min(),
                };
                (open.map(|open| open.id.clone()), deadline)
            }
            (WaitFor::AdminResolution, None) | (WaitFor::LiveHandback, _) => {
                let earlier = self.earlier_handback();
                if let Some(payload) = earlier.filter(|_| wait.wait_for == WaitFor::LiveHandback) {
                    return Performed::Resume(Resume::Value(Some(payload)));
                }
                return refuse(
                    "nothing_to_wait_for",
                    "this run has opened nothing to wait for",
                );
            }
            (WaitFor::AdminResolution, Some(escalation)) => {
                if !escalation.is_open() {
                    let payload = self.resolution_payload(escalation);
                    return Performed::Resume(Resume::Value(Some(payload)));
                }
                let deadline = match escalation.stopped {
                    // Somebody works on it already: the wait's own time begins when they leave it.
                    Some(_) => {
                        left_ms = wait.timeout_ms;
                        None
                    }
                    None => [own, escalation.deadline].into_iter().flatten().min(),
                };
                (Some(escalation.id.clone()), deadline)
            }
            (WaitFor::ConfirmResponse | WaitFor::Timeout, _) => (None, own),
        };
        self.pause_flow(FlowPause::Wait {
            interrupt_id: interrupt_id.clone(),
            wait_for: wait.wait_for,
            escalation_id,
            deadline,
            left_ms,
            since: self.now,
            attempts: 0,
        });
        self.emit(Body::InterruptPaused {
            interrupt_id,
            kind: "wait".to_owned(),
            wait_for: Some(wait.wait_for),
            deadline,
        });
        Performed::Leave(Next::DONE)
    }
}

fn shown_escalation(escalation: &EscalationRecord) -> Value {
    json!({
        "escalationId": escalation.id,
        "mode": escalation.mode,
        "status": "open",
        "createdAt": escalation.created_at.rfc3339(),
    })
}

pub(super) fn refuse(code: &str, message: &str) -> Performed {
    Performed::Resume(Resume::Throw(FlowError::effect(code, message)))
}

pub(super) fn tool_failure(name: &str, error: &CodeError, on_error: ToolErrorMode) -> Resume {
    match on_error {
        ToolErrorMode::Throw => {
            Resume::Throw(FlowError::tool(&error.code, &error.message).with("tool", name))
        }
        ToolErrorMode::Return => Resume::Value(Some(json!({
            "ok": false, "code": error.code, "message": error.message,
        }))),
    }
}
