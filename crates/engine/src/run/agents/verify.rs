//! Verification: sends the request to the verifier and records its answer as a verdict.

use crate::ids::{child_run_id, logical_invocation_id};
use crate::node::{HttpConfig, Kind, Supervisor, Verifier, VerifierReport, VerifierSource};
use crate::run::children::ChildRunSpec;
use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{
    AgentEventKind, EffectId, ErrorInfo, Event, NodeId, Object, ParentCause, RunId, RunStatus, Seq,
    VerificationRequest, VerificationSubject, Work,
};

impl Run {
    pub(super) fn supervisor(&self, node: &NodeId) -> Option<(usize, &Supervisor)> {
        let ix = self.def.index(node)?;
        match &self.def.nodes[ix].kind {
            Kind::Supervisor(config) => Some((ix, config)),
            _ => None,
        }
    }

    /// The endpoint of the verifier a dispatch node waits for.
    pub(in crate::run) fn verifier_endpoint(&self, ix: usize) -> Option<&HttpConfig> {
        let requested = self.verifying(ix)?;
        let (_, config) = self.supervisor(requested.supervisor.as_ref()?)?;
        match &config.verifier.as_ref()?.source {
            VerifierSource::Endpoint(http) => Some(http),
            VerifierSource::Workflow { .. } | VerifierSource::Plan(_) => None,
        }
    }

    /// Whether a node waits for its verifier.
    pub(in crate::run) fn awaits_verdict(&self, ix: usize) -> bool {
        let requested = self.verifying(ix);
        requested.is_some_and(|v| v.verdict.is_none())
    }

    /// The effect id of a call to a verifier in this execution of the node.
    pub(in crate::run) fn verifier_effect_id(
        &self,
        ix: usize,
        verification_subject: &VerificationSubject,
    ) -> EffectId {
        let (tenant, node) = (&self.request().owner.tenant, &self.def.nodes[ix].id);
        let execution = u64::from(self.node(ix).execution.saturating_sub(1));
        let provider = format!(
            "tandem:verifier:{}",
            verification_index(verification_subject)
        );
        logical_invocation_id(tenant, self.id(), node, execution, &provider)
    }

    /// The id of a verifier's run in this execution and attempt of the node.
    pub(in crate::run) fn verifier_run_id(
        &self,
        ix: usize,
        verification_subject: &VerificationSubject,
    ) -> RunId {
        let state = self.node(ix);
        // Counted down from the maximum, so that it never meets the index of a worker.
        let from_end =
            state.attempt.wrapping_mul(1 << 10) + verification_index(verification_subject);
        let node = &self.def.nodes[ix].id;
        let execution = state.execution.saturating_sub(1);
        child_run_id(self.id(), node, execution, u32::MAX - from_end)
    }

    /// The newest verdict, as sent to the supervisor's next iteration.
    pub(super) fn latest_verdict_json(&self) -> Option<Value> {
        let agent_event = self.state.agents.verdict.as_ref()?;
        let AgentEventKind::Verified {
            verification_subject,
            verdict,
            criteria,
            feedback,
            ..
        } = &agent_event.kind
        else {
            return None;
        };
        Some(json!({
            "agentId": agent_event.agent_id,
            "target": self.target(verification_subject),
            "verdict": verdict,
            "criteria": criteria,
            "feedback": feedback,
        }))
    }

    fn target(&self, verification_subject: &VerificationSubject) -> String {
        match verification_subject {
            VerificationSubject::Decision { decided } => self.id().event_id(*decided),
            VerificationSubject::Output { child, .. } => child.to_string(),
        }
    }
}

impl DecisionDraft<'_> {
    /// Requests a verification. The answer comes later, unless a test plan contains it.
    pub(in crate::run) fn request_verification(
        &mut self,
        ix: usize,
        verification_subject: VerificationSubject,
        cause: Seq,
    ) {
        let def = Arc::clone(&self.run.def);
        let Some((supervisor, verifier)) = self.verifier_at(&def, ix) else {
            unreachable!("only a supervisor with a verifier has results checked");
        };
        match &verifier.source {
            VerifierSource::Plan(plan) => match plan.get(self.run.state.agents.verdicts as usize) {
                Some(report) => self.emit_verdict(ix, verification_subject, report.clone(), cause),
                None => {
                    let message = "the plan has no further verdict";
                    self.verifier_failed(
                        ix,
                        &ErrorInfo::new("validation_error", message),
                        None,
                        cause,
                    );
                }
            },
            VerifierSource::Endpoint(http) => {
                let body = self.subject(ix, verifier, &verification_subject);
                let request = http.request(&Object::from_iter([("body".to_owned(), body)]));
                let work = Work::Http {
                    effect: self.run.verifier_effect_id(ix, &verification_subject),
                    request: request.expect("an endpoint has a url"),
                    output: None,
                };
                self.record_verification_request(ix, supervisor, verification_subject, work, cause);
            }
            VerifierSource::Workflow { id, .. } => {
                let admitted = self.admit_child(id);
                if self.needs.is_some() {
                    return;
                }
                if let Err(error) = admitted {
                    self.verifier_failed(ix, &error, None, cause);
                    return;
                }
                let work = Work::Child {
                    child: self.run.verifier_run_id(ix, &verification_subject),
                    workflow_id: id.clone(),
                    outputs: Vec::new(),
                    absorb_failure: false,
                    propagate_cancel: true,
                };
                let requested = self.record_verification_request(
                    ix,
                    supervisor,
                    verification_subject,
                    work,
                    cause,
                );
                self.start_verifier_run(ix, requested);
            }
        }
    }

    fn record_verification_request(
        &mut self,
        ix: usize,
        supervisor: usize,
        verification_subject: VerificationSubject,
        work: Work,
        cause: Seq,
    ) -> Seq {
        let emitter = self.run.verifier_emitter(ix, supervisor);
        let requested = VerificationRequest {
            node: self.run.def.nodes[ix].id.clone(),
            supervisor: self.run.def.nodes[supervisor].id.clone(),
            agent_id: emitter.agent_id,
            verification_subject,
            work,
        };
        self.emit(
            Event::VerificationRequested(Box::new(requested)),
            Some(cause),
        )
    }

    /// Starts the child run that serves as a node's verifier. In a fork it replaces the source's
    /// child.
    pub(in crate::run) fn start_verifier_run(&mut self, ix: usize, cause: Seq) {
        let def = Arc::clone(&self.run.def);
        let Some((_, verifier)) = self.verifier_at(&def, ix) else {
            return;
        };
        let state = self.run.node(ix);
        let (Some(Work::Child { child, .. }), Some(requested)) =
            (&state.work, self.run.verifying(ix))
        else {
            return;
        };
        let (child, verification_subject) = (child.clone(), requested.verification_subject.clone());
        let VerifierSource::Workflow { id, verdict } = &verifier.source else {
            return;
        };
        let definition = match self.admit_child(id) {
            Ok(definition) => definition,
            Err(_) if self.needs.is_some() => return,
            Err(error) => return self.verifier_failed(ix, &error, None, cause),
        };
        let event = Event::NodeDispatched {
            node: def.nodes[ix].id.clone(),
            child: child.clone(),
            workflow_id: id.clone(),
        };
        let dispatched = self.emit(event, Some(cause));
        let subject = self.subject(ix, verifier, &verification_subject);
        self.start_child(ChildRunSpec {
            ix,
            child,
            definition,
            given: Object::from_iter([("subject".to_owned(), subject)]),
            inputs: &[],
            outputs: &[(String::new(), verdict.clone())],
            cause: ParentCause::Dispatch,
            dispatched,
            isolated_memory: false,
        });
    }

    /// The body of a verification request. Values marked sensitive by the author of this run are
    /// not sent to a verifier that is a run. Values derived from them are sent, and masked there.
    fn subject(
        &self,
        ix: usize,
        verifier: &Verifier,
        verification_subject: &VerificationSubject,
    ) -> Value {
        let run = &self.run;
        let decided = run.state.agents.decided.as_ref();
        let in_a_run = matches!(verifier.source, VerifierSource::Workflow { .. });
        let given = |name: &str| !(in_a_run && run.def.is_declared_sensitive(name));
        let mut variables = run.view().variables;
        variables.retain(|name, _| given(name));
        let mut subject = json!({
            "runId": run.id(),
            "nodeId": run.def.nodes[ix].id,
            "iteration": decided.map(|d| d.iteration),
            "target": run.target(verification_subject),
            "decision": decided.map(|d| &d.decision),
            "criteria": verifier.criteria,
            "variables": variables,
        });
        match verification_subject {
            VerificationSubject::Decision { .. } => subject["over"] = json!("terminate"),
            VerificationSubject::Output { index, .. } => {
                subject["over"] = json!("output");
                let def = Arc::clone(&run.def);
                let worker = run.dispatching(ix);
                let worker = worker.and_then(|d| d.workers.get(*index as usize));
                if let (Some(worker), Kind::Dispatch(config)) = (worker, &def.nodes[ix].kind) {
                    let mapped = config.outputs(&worker.workflow).iter();
                    let left = |(ours, theirs): &(String, String)| {
                        let value = worker.variables.get(theirs).filter(|_| given(ours));
                        Some((ours.clone(), value?.clone()))
                    };
                    subject["workerId"] = json!(worker.workflow);
                    subject["output"] = Value::Object(mapped.filter_map(left).collect());
                }
            }
        }
        subject
    }

    /// The supervisor whose verifier checks results at a dispatch node, and that verifier.
    fn verifier_at<'d>(
        &self,
        def: &'d crate::Definition,
        ix: usize,
    ) -> Option<(usize, &'d Verifier)> {
        let requested = self.run.verifying(ix).and_then(|v| v.supervisor.as_ref());
        let dispatching = self.run.dispatching(ix);
        let carried = dispatching.and_then(|d| d.supervisor.as_ref());
        let newest = self.run.state.agents.decided.as_ref().map(|d| &d.node);
        let supervisor = def.index(requested.or(carried).or(newest)?)?;
        match &def.nodes[supervisor].kind {
            Kind::Supervisor(config) => Some((supervisor, config.verifier.as_ref()?)),
            _ => None,
        }
    }

    /// Handles the end of the verifier's run.
    pub(in crate::run) fn verifier_run_ended(
        &mut self,
        ix: usize,
        status: RunStatus,
        variables: &Object,
        error: Option<ErrorInfo>,
        cause: Seq,
    ) {
        let def = Arc::clone(&self.run.def);
        let variable = self
            .verifier_at(&def, ix)
            .and_then(|(_, v)| match &v.source {
                VerifierSource::Workflow { verdict, .. } => Some(verdict),
                VerifierSource::Endpoint(_) | VerifierSource::Plan(_) => None,
            });
        let failed = match status {
            RunStatus::Completed => {
                let answer_value = variable.and_then(|name| variables.get(name));
                return self.verifier_answered(
                    ix,
                    answer_value.unwrap_or(&Value::Null),
                    Some(status),
                    cause,
                );
            }
            RunStatus::Failed => error,
            _ => Some(ErrorInfo::new("child_cancelled", "its run was cancelled")),
        };
        let failed = failed.unwrap_or_else(|| ErrorInfo::new("child_failed", "no reason given"));
        self.verifier_failed(ix, &failed, Some(status), cause);
    }

    /// Handles the verifier's answer and checks that it is valid.
    pub(in crate::run) fn verifier_answered(
        &mut self,
        ix: usize,
        answer: &Value,
        child: Option<RunStatus>,
        cause: Seq,
    ) {
        let Some(requested) = self.run.verifying(ix).cloned() else {
            return;
        };
        match VerifierReport::read(answer) {
            Ok(report) => self.emit_verdict(ix, requested.verification_subject, report, cause),
            Err(message) => {
                let error = ErrorInfo::new("validation_error", message);
                self.verifier_failed(ix, &error, child, cause);
            }
        }
    }

    /// Handles a missing verdict: retries while the retry budget lasts, then fails the node.
    pub(in crate::run) fn verifier_failed(
        &mut self,
        ix: usize,
        why: &ErrorInfo,
        child: Option<RunStatus>,
        cause: Seq,
    ) {
        let message = format!("the verifier gave no verdict: {}", why.message);
        let mut error = ErrorInfo::new("verification_unavailable", message)
            .with_details(json!({"reason": {"code": why.code, "message": why.message}}));
        error.retryable = why.retryable;
        match child {
            None => self.fail_or_retry(ix, error, cause),
            Some(_) => self.fail_node(ix, error, Some(cause), child),
        }
    }

    /// Records a verdict as an event. Only criteria names that the author declared are kept, so
    /// that no part of the checked value reaches the log.
    fn emit_verdict(
        &mut self,
        ix: usize,
        verification_subject: VerificationSubject,
        report: VerifierReport,
        cause: Seq,
    ) {
        let def = Arc::clone(&self.run.def);
        let Some((supervisor, verifier)) = self.verifier_at(&def, ix) else {
            unreachable!("only a supervisor's verifier gives a verdict");
        };
        if !self.cx.agents.is_supported() {
            // The run is older than the switch that turned agents off.
            let error = ErrorInfo::new("capability_not_provided", "this host serves no agents");
            return self.verifier_failed(ix, &error, None, cause);
        }
        let declared = verifier.criteria.iter();
        let criteria = declared.filter(|key| report.criteria.contains(key));
        let event = AgentEventKind::Verified {
            verification_subject,
            verdict: report.verdict,
            criteria: criteria.cloned().collect(),
            confidence: report.confidence,
            feedback: report.feedback,
        };
        let emitter = self.run.verifier_emitter(ix, supervisor);
        self.emit_agent_event(&emitter, event, cause);
    }
}

/// The index of a verification within one execution of a node.
fn verification_index(verification_subject: &VerificationSubject) -> u32 {
    match verification_subject {
        VerificationSubject::Decision { .. } => 0,
        VerificationSubject::Output { index, .. } => index + 1,
    }
}
