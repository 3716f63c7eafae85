//! Flows that somebody else than the user starts: admins, operators, workflows. Also diverged runs.

use super::decide::SessionRefusal;
use super::draft::{Divergence, Draft};
use super::turn::Next;
use crate::agent::OnDivergence;
use serde_json::Value;
use tandem_record::conversation::{
    CandidateOrigin, DivergenceAction, FlowFailure, FlowOrigin, FlowRecord, FlowReport,
    FlowStartRequest, OnActiveFlow, ParentNode, SessionEventBody as Body, SessionReply,
    SessionWork, TurnCause,
};
use tandem_record::{EffectId, FlowId, RunId};

/// Flows of workflows that wait at the same time.
const MAX_DEFERRED: usize = 100;

impl Draft<'_> {
    /// An admin starts a flow.
    pub(super) fn queue_flow_start(
        &mut self,
        flow: &FlowId,
        input: Option<Value>,
    ) -> Result<SessionReply, SessionRefusal> {
        self.admit_flow(flow, input.as_ref())?;
        if self.session.is_occupied() {
            return Err(SessionRefusal::FlowActive);
        }
        Ok(self.queue_start(FlowStartRequest {
            flow: flow.clone(),
            input,
            origin: FlowOrigin::Api,
            parent: None,
            attempt: 1,
            preempts: false,
        }))
    }

    /// A node of a workflow starts a flow.
    pub(super) fn start_for_workflow(
        &mut self,
        flow: &FlowId,
        input: Option<Value>,
        parent: &ParentNode,
        on_active: OnActiveFlow,
    ) -> Result<SessionReply, SessionRefusal> {
        if self.knows_flow_of(parent) {
            return Ok(SessionReply::Done);
        }
        self.admit_flow(flow, input.as_ref())?;
        let is_asking = self.session.flow.is_some() && !self.session.has_open_interrupt();
        let preempts = on_active == OnActiveFlow::Preempt && is_asking;
        if self.session.is_occupied() && !preempts {
            let is_full = self.session.deferred.len() >= MAX_DEFERRED;
            if on_active != OnActiveFlow::Wait || is_full {
                return Err(SessionRefusal::FlowActive);
            }
            self.emit(Body::FlowStartDeferred {
                flow_id: flow.clone(),
                input,
                parent: parent.clone(),
            });
            return Ok(SessionReply::Done);
        }
        Ok(self.queue_start(FlowStartRequest {
            flow: flow.clone(),
            input,
            origin: FlowOrigin::Workflow,
            parent: Some(parent.clone()),
            attempt: 1,
            preempts,
        }))
    }

    /// Whether the flow of this node was accepted before and has not ended.
    fn knows_flow_of(&self, parent: &ParentNode) -> bool {
        let session = &self.session;
        let active = session.flow.as_ref().and_then(|flow| flow.parent.as_ref());
        let mut deferred = session.deferred.iter().map(|d| d.parent.as_ref());
        active == Some(parent)
            || deferred.any(|of| of == Some(parent))
            || session.has_turn(|cause| starts_for(cause, parent))
    }

    fn admit_flow(&self, flow: &FlowId, input: Option<&Value>) -> Result<(), SessionRefusal> {
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        if !self.cx.agent.flows.contains_key(flow.as_str()) {
            return Err(SessionRefusal::UnknownFlow(flow.to_string()));
        }
        self.check_flow_input(flow, input)
            .map_err(SessionRefusal::InvalidInput)
    }

    fn queue_start(&mut self, request: FlowStartRequest) -> SessionReply {
        self.emit(Body::TurnQueued {
            cause: TurnCause::StartFlow(Box::new(request)),
        });
        SessionReply::Accepted {
            turn: self.session.last_turn,
        }
    }

    /// A flow of a workflow that waited gets its turn.
    pub(super) fn start_deferred_flow(&mut self) {
        if self.session.ended.is_some() || self.session.is_occupied() {
            return;
        }
        let is_start = |cause: &TurnCause| matches!(cause, TurnCause::StartFlow(_));
        if self.session.has_turn(is_start) {
            return;
        }
        if let Some(request) = self.session.deferred.front().cloned() {
            self.queue_start(request);
        }
    }

    /// The workflow of a flow was cancelled: the flow ends, or never begins.
    pub(super) fn cancel_flow_of(&mut self, parent: &ParentNode) {
        let flow = self.session.flow.as_ref();
        if flow.is_some_and(|flow| flow.parent.as_ref() == Some(parent)) {
            self.end_flow_from_outside("parent_cancelled");
        }
        let mut deferred = self.session.deferred.iter();
        let is_deferred = deferred.any(|request| request.parent.as_ref() == Some(parent));
        let mut waiting = self.session.queued_turns();
        let is_queued = waiting.any(|waiting| starts_for(&waiting.cause, parent));
        drop(waiting);
        if is_deferred || is_queued {
            self.emit(Body::FlowStartWithdrawn {
                parent: parent.clone(),
            });
        }
    }

    /// Flows of workflows never begin: their workflows are told.
    pub(super) fn withdraw_deferred_flows(&mut self, reason: &str) {
        for request in self.session.deferred.clone() {
            let Some(parent) = request.parent else {
                continue;
            };
            self.emit(Body::FlowStartWithdrawn {
                parent: parent.clone(),
            });
            self.report_unstarted(parent, reason);
        }
        let waiting = self.session.waiting.iter();
        let parents = waiting.filter_map(|waiting| match &waiting.cause {
            TurnCause::StartFlow(request) => request.parent.clone(),
            _ => None,
        });
        for parent in parents.collect::<Vec<_>>() {
            self.report_unstarted(parent, reason);
        }
    }

    fn report_unstarted(&mut self, parent: ParentNode, reason: &str) {
        let id = match &parent.flow_run_id {
            Some(flow_run) => format!("{flow_run}:end"),
            None => format!("{}:{}:end", parent.run_id, parent.node_id),
        };
        let id = EffectId::from(id);
        let report = FlowReport {
            parent,
            flow_run_id: None,
            status: "cancelled".to_owned(),
            reason: Some(reason.to_owned()),
            message: None,
            result: None,
            answers: std::collections::BTreeMap::new(),
        };
        self.add_work(id, SessionWork::ReportFlow(Box::new(report)));
    }

    /// The turn that starts the flow somebody asked for.
    pub(super) fn start_requested_flow(&mut self, request: FlowStartRequest) -> Next {
        let is_asking = self.session.flow.is_some() && !self.session.has_open_interrupt();
        if request.preempts && is_asking {
            self.end_flow(Some("preempted"), true);
        }
        if self.session.is_occupied() {
            self.emit(Body::FlowStartRefused {
                reason: "flow_active".to_owned(),
            });
            if let Some(parent) = request.parent {
                self.report_unstarted(parent, "flow_active");
            }
            return Next::DONE;
        }
        let parent = request.parent.clone();
        match self.start_flow_as(request) {
            Some(next) => next,
            None => {
                if let Some(parent) = parent {
                    self.report_unstarted(parent, "invalid_input");
                }
                Next::DONE
            }
        }
    }

    pub(super) fn abort_flow(&mut self) -> Result<SessionReply, SessionRefusal> {
        if self.session.flow.is_none() {
            return Err(SessionRefusal::NoFlow);
        }
        self.end_flow_from_outside("aborted");
        Ok(SessionReply::Done)
    }

    /// Ends the active flow between or during turns. A turn that drives it ends with it.
    fn end_flow_from_outside(&mut self, reason: &str) {
        let is_driven = self.session.flow.as_ref().is_some_and(|f| !f.is_paused());
        self.end_flow(Some(reason), true);
        if is_driven && self.session.turn.is_some() {
            if self
                .session
                .turn
                .as_ref()
                .is_some_and(|turn| turn.is_beside)
            {
                // The other one drives it.
                self.take_up_aside();
            }
            self.drop_pending_work();
            self.end_turn(tandem_record::conversation::TurnOutcome::Canceled {
                reason: reason.to_owned(),
            });
        } else if self.session.turn.is_none() {
            self.start_deferred_flow();
        }
    }

    /// The code no longer fits its journal. Nothing is performed; the run is no longer the session's
    /// active flow.
    pub(super) fn diverge_flow(&mut self, found: Divergence) -> Next {
        let Some(flow) = self.session.flow.clone() else {
            return Next::DONE;
        };
        let policy = self.cx.agent.on_divergence;
        self.cx.programs.borrow_mut().close(&flow.run);
        self.stop_bridge("flow_diverged");
        self.leave_flow(&flow.run);
        self.record(
            &flow.run,
            FlowRecord::Diverged {
                step: found.step,
                expected: found.expected.clone(),
                actual: found.actual.clone(),
            },
        );
        self.emit(Body::FlowDiverged {
            step: found.step,
            expected: found.expected,
            actual: found.actual,
            code_hash: flow.version.clone(),
        });
        match policy {
            OnDivergence::Park if !self.turn().cause.is_of_user() => {
                // The next message of the user is answered with the fallback reply.
                self.replay_queue();
                return Next::DONE;
            }
            OnDivergence::Park => {}
            OnDivergence::Fail => self.fail_diverged(&flow.run, "diverged"),
            OnDivergence::Restart => {
                self.give_up_diverged(&flow.run, "restarted");
                let request = restart_of(&flow);
                return self.start_flow_as(request).unwrap_or(Next::DONE);
            }
        }
        self.replay_queue();
        let text = self.cx.agent.texts.fallback_reply.clone();
        self.respond(&text, CandidateOrigin::Fallback, None)
    }

    /// An operator decides what becomes of a diverged run.
    pub(super) fn settle_divergence(
        &mut self,
        run: &RunId,
        action: DivergenceAction,
    ) -> Result<SessionReply, SessionRefusal> {
        let flow = self.session.diverged.get(run).cloned();
        let flow = flow.ok_or(SessionRefusal::NoFlow)?;
        match action {
            DivergenceAction::Abort => {
                self.fail_diverged(run, "replay_diverged");
                Ok(SessionReply::Done)
            }
            _ if self.session.is_occupied() => Err(SessionRefusal::FlowActive),
            DivergenceAction::Retry => {
                // Only a run that waits can go on: what it was doing otherwise is unknown.
                let pause = flow.pause.clone().ok_or(SessionRefusal::NotRetryable)?;
                self.record(
                    run,
                    FlowRecord::Paused {
                        pause,
                        question: flow.current.clone().unwrap_or_default(),
                    },
                );
                self.settle(&flow, true);
                // Its bridge was stopped when it diverged.
                let bridge = self.queue_bridge_end("flow_diverged", false);
                let turn = bridge.or_else(|| self.queue_undelivered(&flow));
                Ok(turn.map_or(SessionReply::Done, |turn| SessionReply::Accepted { turn }))
            }
            DivergenceAction::Restart => {
                self.give_up_diverged(run, "restarted");
                Ok(self.queue_start(restart_of(&flow)))
            }
        }
    }

    /// What was decided about the question of a run when it diverged, or since, gets a turn. Returns its number.
    fn queue_undelivered(&mut self, flow: &super::ActiveFlow) -> Option<u64> {
        let pause = flow.pause.as_ref()?;
        let escalation = pause.escalation_id();
        let closed = escalation.filter(|id| {
            let known = self.session.escalations.get(*id);
            known.is_some_and(|escalation| !escalation.is_open())
        });
        let finished = flow.finished_workflow.as_ref();
        let finished = finished.filter(|(interrupt, _)| interrupt == pause.interrupt_id());
        let cause = match (closed, &flow.undelivered, finished) {
            (Some(id), _, _) => TurnCause::EscalationClosed {
                escalation: id.clone(),
            },
            (None, Some(cause), _) => (**cause).clone(),
            (None, None, Some((interrupt, result))) => TurnCause::WorkflowFinished {
                interrupt: interrupt.clone(),
                result: Box::new(result.clone()),
            },
            (None, None, None) => return None,
        };
        self.emit(Body::TurnQueued { cause });
        Some(self.session.last_turn)
    }

    fn settle(&mut self, flow: &super::ActiveFlow, retried: bool) {
        if !retried {
            self.close_question(flow);
        }
        self.emit_for(
            Some(flow.reference()),
            Body::DivergenceSettled {
                flow_run_id: flow.run.clone(),
                retried,
            },
        );
    }

    pub(super) fn fail_diverged(&mut self, run: &RunId, code: &str) {
        let Some(flow) = self.session.diverged.get(run).cloned() else {
            return;
        };
        let failure = FlowFailure {
            code: code.to_owned(),
            message: "the code does something else than the journal of the run".to_owned(),
            details: None,
        };
        let record = FlowRecord::Failed {
            failure: failure.clone(),
        };
        self.record(run, record);
        self.settle(&flow, false);
        let reference = Some(flow.reference());
        self.report_flow_end(&flow, "failed", Some(code), None);
        self.emit_for(reference, Body::FlowFailed { error: failure });
    }

    fn give_up_diverged(&mut self, run: &RunId, reason: &str) {
        let Some(flow) = self.session.diverged.get(run).cloned() else {
            return;
        };
        let record = FlowRecord::Ended {
            reason: Some(reason.to_owned()),
            cancelled: true,
        };
        self.record(run, record);
        self.settle(&flow, false);
        let reason = Some(reason.to_owned());
        self.emit_for(Some(flow.reference()), Body::FlowEnded { reason });
    }
}

/// Whether a turn starts the flow of this node.
fn starts_for(cause: &TurnCause, parent: &ParentNode) -> bool {
    match cause {
        TurnCause::StartFlow(request) => request.parent.as_ref() == Some(parent),
        _ => false,
    }
}

/// The same flow with the same input, once more.
fn restart_of(flow: &super::ActiveFlow) -> FlowStartRequest {
    FlowStartRequest {
        flow: flow.flow.clone(),
        input: flow.input.clone(),
        origin: match flow.parent {
            Some(_) => FlowOrigin::Workflow,
            None => FlowOrigin::Api,
        },
        parent: flow.parent.clone(),
        attempt: flow.attempt + 1,
        preempts: false,
    }
}
