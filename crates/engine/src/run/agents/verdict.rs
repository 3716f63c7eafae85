//! What needs verification, and what a verdict allows. Fails closed: without a `pass` nothing is
//! merged and nothing ends.
//!
//! The consequence of a verdict is derived from the state whenever the run advances, like
//! everything a dispatch node does. A pause or a crash between the two changes nothing.

use super::workers::{Dispatching, WorkerState, WorkerStep};
use crate::node::{Dispatch, Kind, OrchestratorDecision, Route};
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::{Done, NodeOutcome};
use crate::run::state::Run;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{ErrorInfo, Object, Seq, VerificationSubject, VerifierVerdict, WorkflowId};

impl Run {
    /// Why the run may not end as completed although nothing is left to do: the newest decision was
    /// to end it, that decision needed a verification, and it did not pass.
    pub(in crate::run) fn unverified_termination(&self) -> Option<(usize, ErrorInfo)> {
        let decided = self.state.agents.decided.as_ref()?;
        let (ix, config) = self.supervisor(&decided.node)?;
        let decision = OrchestratorDecision::read(&decided.decision).ok()?;
        let verifier = config.verifier.as_ref().is_some_and(|v| v.over_terminate);
        let gated = verifier || !config.success_criteria.is_empty();
        (gated && decision.route == Route::Terminate).then(|| {
            let message = "the decision to end the run was not let pass, and no other followed";
            (ix, ErrorInfo::new("verification_failed", message))
        })
    }

    /// Whether a worker's output is verified before it is harvested.
    pub(super) fn checks_output(&self, ix: usize, config: &Dispatch, worker: &WorkflowId) -> bool {
        let dispatching = self.dispatching(ix);
        let supervisor = dispatching.and_then(|d| d.supervisor.as_ref());
        let verifier = supervisor.and_then(|node| self.supervisor(node)?.1.verifier.as_ref());
        verifier.is_some_and(|v| v.over_output) && !config.outputs(worker).is_empty()
    }

    /// The first worker, in the order they ended, whose output waits for verification.
    pub(super) fn next_unverified_output(
        &self,
        ix: usize,
        config: &Dispatch,
        dispatching: &Dispatching,
    ) -> Option<(VerificationSubject, Seq)> {
        let workers = dispatching.workers.iter().enumerate();
        let waiting = workers.filter(|(_, w)| {
            w.step == WorkerStep::Completed
                && w.verdict.is_none()
                && self.checks_output(ix, config, &w.workflow)
        });
        let (index, worker) = waiting.min_by_key(|(_, w)| w.last)?;
        let verification_subject = VerificationSubject::Output {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            child: worker.child.clone()?,
        };
        Some((verification_subject, worker.last))
    }
}

impl DecisionDraft<'_> {
    /// Handles a decision to end the run: checks its criteria, requests verification, then carries
    /// it out.
    pub(super) fn verify_and_terminate(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        decided: Seq,
    ) -> NodeOutcome {
        let def = Arc::clone(&self.run.def);
        let node = self.run.state.agents.decided.as_ref().map(|d| &d.node);
        let supervisor = node.and_then(|node| def.index(node));
        let config = supervisor.and_then(|ix| match &def.nodes[ix].kind {
            Kind::Supervisor(config) => Some(config),
            _ => None,
        });
        let declared = config.map_or(&[][..], |c| &c.success_criteria);
        let stated = criteria(&decision.document);
        let stands = |key: &&String| stated.iter().all(|(stated, _)| stated != *key);
        let open: Vec<&String> = declared.iter().filter(stands).collect();
        if !open.is_empty() {
            let outputs = Object::from_iter([("unanswered".to_owned(), json!(open))]);
            self.complete_node(ix, Done::with(outputs), decided);
            return NodeOutcome::AlreadyRecorded;
        }
        match config.and_then(|c| c.verifier.as_ref()) {
            Some(verifier) if verifier.over_terminate => {
                self.request_verification(ix, VerificationSubject::Decision { decided }, decided);
                self.continue_dispatch(ix);
            }
            _ => self.end_by_decision(ix, decided),
        }
        NodeOutcome::AlreadyRecorded
    }

    /// Ends the run: nothing prevents it.
    fn end_by_decision(&mut self, ix: usize, decided: Seq) {
        let newest = self.run.state.agents.decided.as_ref();
        let stated = newest.map_or_else(Vec::new, |d| criteria(&d.decision));
        let mut outputs = Object::new();
        if !stated.is_empty() {
            // A decision to give up also ends the run, and the missing success is recorded.
            let satisfied = stated.iter().all(|(_, met)| *met);
            outputs.insert("goalSatisfied".to_owned(), json!(satisfied));
        }
        self.complete_node(ix, Done::with(outputs), decided);
        self.terminate_run();
    }

    /// Acts on a verdict, or requests it again if a pause cut the request off. Returns whether the
    /// node's workers may continue.
    pub(super) fn continue_verification(&mut self, ix: usize) -> bool {
        let state = self.run.node(ix);
        let Some(verifying) = self.run.verifying(ix).cloned() else {
            return true;
        };
        match (&verifying.verification_subject, verifying.verdict) {
            (_, None) => {
                let cut_off = state.work.is_none() && state.retry_at.is_none();
                if let Some(cause) = state.last.filter(|_| cut_off) {
                    self.request_verification(ix, verifying.verification_subject, cause);
                }
                false
            }
            (VerificationSubject::Decision { decided }, Some(verdict)) => {
                let feedback = verifying.feedback.as_deref();
                self.act_on_verdict(ix, verdict, feedback, *decided);
                false
            }
            (VerificationSubject::Output { .. }, Some(_)) => true,
        }
    }

    /// Acts on a verdict about the end of the run.
    fn act_on_verdict(
        &mut self,
        ix: usize,
        verdict: VerifierVerdict,
        feedback: Option<&str>,
        decided: Seq,
    ) {
        let cause = self.run.node(ix).last.unwrap_or(decided);
        match verdict {
            VerifierVerdict::Pass => self.end_by_decision(ix, decided),
            VerifierVerdict::Fail => {
                let message = "the verifier refused the decision to end the run";
                let error = ErrorInfo::new("verification_failed", message);
                self.fail_node(ix, error, Some(cause), None);
            }
            // The back edge leads to the supervisor's next iteration.
            VerifierVerdict::Revise => {
                let outputs = verdict_outputs(VerifierVerdict::Revise, feedback);
                self.complete_node(ix, Done::with(outputs), decided);
            }
        }
    }

    /// A worker's output was refused: nothing of it is merged, and no further worker starts before
    /// the supervisor has decided again.
    pub(super) fn refuse_output(
        &mut self,
        ix: usize,
        worker: &WorkerState,
        mut outputs: Object,
        decided: Seq,
    ) {
        let verifying = self.run.verifying(ix);
        let feedback = verifying.and_then(|v| v.feedback.clone());
        let verdict = worker.verdict.expect("a refused output has a verdict");
        outputs.extend(verdict_outputs(verdict, feedback.as_deref()));
        self.complete_node(ix, Done::with(outputs), decided);
    }
}

fn verdict_outputs(verdict: VerifierVerdict, feedback: Option<&str>) -> Object {
    let mut outputs = Object::from_iter([("verdict".to_owned(), json!(verdict))]);
    if let Some(feedback) = feedback {
        outputs.insert("feedback".to_owned(), json!(feedback));
    }
    outputs
}

/// What a decision to end the run states about each criterion.
fn criteria(decision: &Value) -> Vec<(&str, bool)> {
    let listed = decision.get("successCriteria").and_then(Value::as_array);
    let stated = listed.into_iter().flatten();
    stated
        .filter_map(|c| Some((c.get("key")?.as_str()?, c.get("met")?.as_bool()?)))
        .collect()
}
