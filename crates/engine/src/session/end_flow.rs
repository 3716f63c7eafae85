//! How flow runs end: by themselves, by failure, or from outside. Their escalations are detached, messages
//! that were kept for them get their turns, and a workflow that waits is told.

use super::bridge::{FLOW_ENDED, PROXY_WAIT};
use super::draft::Draft;
use super::flow_state::ActiveFlow;
use super::turn::Next;
use serde_json::Value;
use tandem_record::conversation::{
    CandidateOrigin, EscalationMode, FlowFailure, FlowPause, FlowRecord, FlowReport, ResumedBy,
    SessionEventBody as Body, SessionWork, TurnCause,
};
use tandem_record::{EffectId, RunId};

impl Draft<'_> {
    /// Ends the active flow run. Its open escalation stays open, but resumes nothing any more.
    pub(super) fn end_flow(&mut self, reason: Option<&str>, cancelled: bool) {
        self.finish_flow(reason, cancelled, None);
    }

    pub(super) fn finish_flow(
        &mut self,
        reason: Option<&str>,
        cancelled: bool,
        result: Option<Value>,
    ) {
        let Some(flow) = self.session.flow.clone() else {
            return;
        };
        if !self.close_program(&flow.run) && !self.starts(&flow.run) {
            self.needs_program = Some(flow.run.clone());
        }
        self.close_question(&flow);
        self.stop_bridge(FLOW_ENDED);
        self.leave_flow(&flow.run);
        let record = FlowRecord::Ended {
            reason: reason.map(str::to_owned),
            cancelled,
        };
        self.record(&flow.run, record);
        let status = if cancelled { "cancelled" } else { "completed" };
        self.report_flow_end(&flow, status, reason, result);
        let reason = reason.map(str::to_owned);
        self.emit(Body::FlowEnded { reason });
        self.replay_queue();
    }

    /// Runs the `finally` blocks of the code. What it yields meanwhile is not performed. False when the code is not
    /// loaded.
    fn close_program(&mut self, run: &RunId) -> bool {
        let Some(ignored) = self.cx.programs.borrow_mut().close(run) else {
            return false;
        };
        for effect in ignored {
            self.emit(Body::FlowEffectIgnored { effect });
        }
        true
    }

    /// The run ends at a question: nobody answers it any more.
    pub(super) fn close_question(&mut self, flow: &ActiveFlow) {
        let (interrupt_id, kind) = match &flow.pause {
            Some(FlowPause::Confirm { interrupt_id, .. }) => (interrupt_id, "confirm"),
            Some(
                FlowPause::Wait { interrupt_id, .. } | FlowPause::Workflow { interrupt_id, .. },
            ) => (interrupt_id, "wait"),
            Some(FlowPause::ProxyWait { interrupt_id, .. }) => (interrupt_id, PROXY_WAIT),
            Some(FlowPause::Ask { .. }) | None => return,
        };
        let closed = Body::InterruptResumed {
            interrupt_id: interrupt_id.clone(),
            kind: kind.to_owned(),
            by: ResumedBy::Canceled,
            outcome: "canceled".to_owned(),
            text: None,
        };
        self.emit_for(Some(flow.reference()), closed);
    }

    /// Tells the workflow that waits for the flow how it ended.
    pub(super) fn report_flow_end(
        &mut self,
        flow: &ActiveFlow,
        status: &str,
        reason: Option<&str>,
        result: Option<Value>,
    ) {
        let Some(parent) = flow.parent.clone() else {
            return;
        };
        let report = FlowReport {
            parent,
            flow_run_id: Some(flow.run.clone()),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            message: None,
            result: result.filter(|value| !value.is_null()),
            answers: flow.answers.clone(),
        };
        let id = EffectId::from(format!("{}:end", flow.run));
        self.add_work(id, SessionWork::ReportFlow(Box::new(report)));
    }

    /// The code failed: the run ends, the user is told that something went wrong.
    pub(super) fn fail_flow(&mut self, failure: FlowFailure) -> Next {
        let Some(flow) = self.session.flow.clone() else {
            return Next::DONE;
        };
        self.close_program(&flow.run);
        self.close_question(&flow);
        self.stop_bridge(FLOW_ENDED);
        self.leave_flow(&flow.run);
        let record = FlowRecord::Failed {
            failure: failure.clone(),
        };
        self.record(&flow.run, record);
        self.report_flow_end(&flow, "failed", Some(&failure.code), None);
        self.emit(Body::FlowFailed { error: failure });
        self.replay_queue();
        let text = self.cx.agent.texts.fallback_reply.clone();
        self.respond(&text, CandidateOrigin::Fallback, None)
    }

    pub(super) fn leave_flow(&mut self, run: &RunId) {
        let open = self.session.escalations.values();
        // A takeover is the session's: it goes on without the flow.
        let of_run = open.filter(|e| {
            e.is_open()
                && e.flow_run_id.as_ref() == Some(run)
                && e.mode == EscalationMode::AsyncResolution
        });
        let ids: Vec<_> = of_run.map(|e| e.id.clone()).collect();
        for escalation_id in ids {
            self.emit(Body::EscalationDetached { escalation_id });
        }
    }

    /// Messages that were kept while a person was awaited get a turn each.
    pub(super) fn replay_queue(&mut self) {
        for message in self.session.queued.clone() {
            self.emit(Body::TurnQueued {
                cause: TurnCause::QueueReplay {
                    message: Box::new(message),
                },
            });
        }
    }
}
