//! Flow runs: their start, their effects, their end.

use crate::session::flow_state::{ActiveFlow, client_id};
use crate::session::state::ChatSession;
use crate::session::turn_state::WaitingTurn;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::Timestamp;
use tandem_record::conversation::{
    FlowOrigin, FlowPause, FlowStartRequest, ResponseSource, ScheduledOutcome, SessionEvent,
    SessionEventBody as Body, TurnCause, TurnTrigger,
};

/// Diverged runs kept for an operator. The oldest is forgotten; its journal stays.
const MAX_DIVERGED: usize = 50;

impl ChatSession {
    pub(super) fn fold_flow(&mut self, event: &SessionEvent, at: Timestamp) {
        self.note_scheduled_result(event);
        match &event.body {
            Body::FlowStarted { .. } => self.begin_flow(event, at),
            Body::FlowStartDeferred {
                flow_id,
                input,
                parent,
            } => self.deferred.push_back(FlowStartRequest {
                flow: flow_id.clone(),
                input: input.clone(),
                origin: FlowOrigin::Workflow,
                parent: Some(parent.clone()),
                attempt: 1,
                preempts: false,
            }),
            Body::FlowStartWithdrawn { parent } => {
                self.deferred.retain(|d| d.parent.as_ref() != Some(parent));
                // Its turn had not begun.
                let is_other = |waiting: &WaitingTurn| match &waiting.cause {
                    TurnCause::StartFlow(request) => request.parent.as_ref() != Some(parent),
                    _ => true,
                };
                self.waiting.retain(is_other);
                self.held.retain(is_other);
            }
            Body::FlowEffectStarted {
                step,
                effect,
                host_calls,
            } => {
                if let Some(flow) = &mut self.flow {
                    flow.steps = step + 1;
                    // The effect, its result, and the calls of the context before it.
                    flow.records += 2 + host_calls;
                    flow.client_ids.extend(client_id(effect).map(str::to_owned));
                    flow.finished_workflow = None;
                    if effect.get("type").and_then(Value::as_str) == Some("interrupt.confirm") {
                        flow.last_confirm = Some(effect.clone());
                    }
                    flow.current = Some(effect.clone());
                }
                if let Some(turn) = &mut self.turn {
                    turn.flow_effects += 1;
                }
            }
            Body::FlowPaused { pause } => {
                if let FlowPause::Wait {
                    interrupt_id,
                    escalation_id: Some(escalation),
                    ..
                } = pause
                    && let Some(escalation) = self.escalations.get_mut(escalation)
                {
                    escalation.interrupt_id = Some(interrupt_id.clone());
                }
                if let Some(flow) = &mut self.flow {
                    flow.pause = Some(pause.clone());
                    flow.is_unasked = self.takeover.is_some();
                }
            }
            Body::FlowResumed { answer, .. } => {
                if let Some(flow) = &mut self.flow {
                    flow.pause = None;
                    let turn = self.turn.as_ref();
                    let message = turn.and_then(|turn| turn.cause.message());
                    flow.last_message = message.map(|m| m.message_id.clone());
                    if let Some((key, text)) = answer {
                        flow.answers.insert(key.clone(), text.clone());
                    }
                }
                self.turn_speaks_for_flow();
            }
            Body::FlowHandoff { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.handoffs += 1;
                }
            }
            Body::FlowEnded { .. } | Body::FlowFailed { .. } => {
                let run = event.flow.as_ref().map(|flow| &flow.flow_run_id);
                self.flow.take_if(|flow| Some(&flow.run) == run);
            }
            Body::FlowDiverged { .. } => {
                let cause = self.turn.as_ref().map(|turn| &turn.cause);
                self.owes_fallback = cause.is_some_and(|cause| !cause.is_of_user());
                let undelivered = cause.filter(|cause| is_given_once(cause)).cloned();
                if let Some(flow) = self.flow.take() {
                    let undelivered = undelivered.map(Box::new);
                    let flow = ActiveFlow {
                        undelivered,
                        ..flow
                    };
                    self.diverged.insert(flow.run.clone(), flow);
                }
                if self.diverged.len() > MAX_DIVERGED {
                    self.diverged.pop_first();
                }
            }
            Body::DivergenceSettled {
                flow_run_id,
                retried,
            } => {
                self.owes_fallback = false;
                let flow = self.diverged.remove(flow_run_id);
                if let Some(flow) = flow.filter(|_| *retried) {
                    self.attach_again(&flow);
                    self.flow = Some(ActiveFlow {
                        undelivered: None,
                        ..flow
                    });
                }
            }
            Body::WorkflowFinishedEarly {
                interrupt_id,
                result,
            } => {
                let parked = event.flow.as_ref().map(|flow| &flow.flow_run_id);
                let parked = parked.and_then(|run| self.diverged.get_mut(run));
                if let Some(flow) = parked.or(self.flow.as_mut()) {
                    flow.finished_workflow = Some((interrupt_id.clone(), result.clone()));
                }
            }
            _ => {}
        }
    }

    /// The outcome of a scheduled turn is what its flow comes to first.
    fn note_scheduled_result(&mut self, event: &SessionEvent) {
        let Some(turn) = &mut self.turn else { return };
        let run = event.flow.as_ref().map(|flow| &flow.flow_run_id);
        let is_of_turn = run.is_some() && turn.flow_run.as_ref() == run;
        if turn.scheduled_result.is_some() || !is_of_turn || turn.cause.scheduled().is_none() {
            return;
        }
        turn.scheduled_result = match &event.body {
            Body::FlowPaused { .. } => Some((ScheduledOutcome::Success, None)),
            Body::FlowEnded { reason } if reason.as_deref() != Some("handoff") => {
                Some((ScheduledOutcome::Success, None))
            }
            Body::FlowFailed { error } => {
                Some((ScheduledOutcome::Failed, Some(error.code.clone())))
            }
            Body::FlowDiverged { .. } => {
                Some((ScheduledOutcome::Failed, Some("diverged".to_owned())))
            }
            _ => None,
        };
    }

    fn begin_flow(&mut self, event: &SessionEvent, at: Timestamp) {
        let (
            Some(reference),
            Body::FlowStarted {
                input,
                version,
                parent,
                attempt,
                ..
            },
        ) = (&event.flow, &event.body)
        else {
            return;
        };
        self.flows_started += 1;
        self.flow = Some(ActiveFlow {
            flow: reference.flow_id.clone(),
            run: reference.flow_run_id.clone(),
            version: version.clone(),
            started_at: at,
            input: input.clone(),
            parent: parent.clone(),
            attempt: *attempt,
            answers: BTreeMap::new(),
            steps: 0,
            current: None,
            pause: None,
            is_unasked: false,
            last_confirm: None,
            last_interrupt: None,
            escalation: None,
            records: 1,
            last_message: None,
            client_ids: Vec::new(),
            finished_workflow: None,
            handback: None,
            undelivered: None,
        });
        self.turn_speaks_for_flow();
    }

    /// A run goes on where it waited: so does the escalation it opened, unless somebody decided it meanwhile.
    fn attach_again(&mut self, flow: &ActiveFlow) {
        let Some(id) = &flow.escalation else { return };
        let Some(escalation) = self.escalations.get_mut(id) else {
            return;
        };
        if !escalation.is_open() || !escalation.detached {
            return;
        }
        escalation.detached = false;
        let pause = flow.pause.as_ref();
        let waits = pause.filter(|pause| pause.escalation_id() == Some(id));
        escalation.interrupt_id = waits.map(|pause| pause.interrupt_id().clone());
        self.attached = Some(id.clone());
    }

    /// The active flow speaks in the turn under way.
    pub(super) fn turn_speaks_for_flow(&mut self) {
        let (Some(turn), Some(flow)) = (&mut self.turn, &self.flow) else {
            return;
        };
        turn.flow_id = Some(flow.flow.clone());
        turn.flow_run = Some(flow.run.clone());
        turn.source = match turn.cause.trigger() {
            TurnTrigger::Scheduled => ResponseSource::Scheduled,
            _ => ResponseSource::Flow,
        };
    }
}

/// Whether nobody gives it again: what a person decided, or the result of a workflow. An answer of the user is not
/// kept, because they are told to try again, and a deadline stays due.
fn is_given_once(cause: &TurnCause) -> bool {
    matches!(
        cause,
        TurnCause::Answered { .. } | TurnCause::WorkflowFinished { .. }
    )
}
