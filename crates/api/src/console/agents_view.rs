//! A supervisor's iterations, collected while the log is read.

use super::shown_bytes::ShownBytes;
use std::collections::VecDeque;
use tandem_console::{AgentsView, CheckView, HandoffView, IterationView};
use tandem_record::{
    AgentEventKind, Cause, Event, HandoffStep, RecordedEvent, Sensitivity, Seq, VerificationSubject,
};
use tandem_wire::v1::time::rfc3339;

/// Iterations shown on a page; a loop may have thousands.
const SHOWN_ITERATIONS: usize = 40;

/// The newest iterations so far.
pub(super) struct AgentsCollector {
    floor: f64,
    iterations: VecDeque<(Seq, IterationView)>,
    omitted: u64,
}

impl AgentsCollector {
    pub(super) fn new(floor: f64) -> Self {
        Self {
            floor,
            iterations: VecDeque::new(),
            omitted: 0,
        }
    }

    pub(super) fn collect(
        floor: f64,
        events: &[RecordedEvent],
        sensitivity: &Sensitivity,
        shown: &mut ShownBytes,
    ) -> AgentsView {
        let mut collector = Self::new(floor);
        for recorded in events {
            collector.apply(recorded, sensitivity);
        }
        collector.view(shown)
    }

    pub(super) fn apply(&mut self, recorded: &RecordedEvent, sensitivity: &Sensitivity) {
        match &recorded.event {
            Event::OrchestratorDecided {
                node,
                agent_id,
                decision,
                iteration,
                ..
            } => {
                let decision = sensitivity.visible_decision(node, decision);
                let text = |key: &str| decision[key].as_str().map(str::to_owned);
                let iteration = IterationView {
                    number: *iteration,
                    agent: agent_id.clone(),
                    kind: text("kind").unwrap_or_default(),
                    reason: text("reason").or_else(|| text("prompt")),
                    confidence: decision["confidence"].as_f64(),
                    ..IterationView::default()
                };
                if self.iterations.len() == SHOWN_ITERATIONS {
                    self.iterations.pop_front();
                    self.omitted += 1;
                }
                self.iterations.push_back((recorded.seq, iteration));
            }
            Event::ConfidenceEscalated { .. } => {
                if let Some((_, iteration)) = self.iterations.back_mut() {
                    iteration.escalated = true;
                }
            }
            Event::Handoff(handoff) => {
                let began = matches!(handoff.step, HandoffStep::Began);
                let place = handoff.index as usize;
                let Some((_, iteration)) = self.find_iteration(recorded.cause.as_ref(), began)
                else {
                    return;
                };
                if iteration.handoffs.len() <= place {
                    iteration.handoffs.resize(place + 1, HandoffView::default());
                }
                let shown = &mut iteration.handoffs[place];
                shown.worker = handoff.worker.to_string();
                let phase = handoff.step.phase().to_owned();
                shown.steps.push((phase, rfc3339(recorded.at)));
                if let Some(child) = handoff.step.child() {
                    shown.child = Some(child.to_string());
                }
                if let HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } =
                    &handoff.step
                {
                    let error = sensitivity.visible_error(Some(&handoff.node), error);
                    shown.error = Some(format!("{}: {}", error.code, error.message));
                }
            }
            Event::VerificationRequested(asked) => {
                if let Some((_, iteration)) = self.iterations.back_mut() {
                    // A repeated verification request is still one check.
                    iteration.checks.retain(|check| check.verdict.is_some());
                    iteration
                        .checks
                        .push(check(&asked.agent_id, &asked.verification_subject));
                }
            }
            Event::Agent(fact) => {
                if let (
                    AgentEventKind::Verified {
                        verification_subject,
                        verdict,
                        criteria,
                        confidence,
                        ..
                    },
                    Some((_, iteration)),
                ) = (&fact.kind, self.iterations.back_mut())
                {
                    iteration.checks.retain(|check| check.verdict.is_some());
                    iteration.checks.push(CheckView {
                        verdict: Some(verdict.as_str().to_owned()),
                        criteria: criteria.clone(),
                        confidence: *confidence,
                        ..check(&fact.agent_id, verification_subject)
                    });
                }
            }
            _ => {}
        }
    }

    /// A first step names its decision as its cause; the others belong to the newest iteration.
    fn find_iteration(
        &mut self,
        cause: Option<&Cause>,
        began: bool,
    ) -> Option<&mut (Seq, IterationView)> {
        match cause {
            Some(Cause::Event(seq)) if began => {
                self.iterations.iter_mut().find(|(at, _)| at == seq)
            }
            _ => self.iterations.back_mut(),
        }
    }

    pub(super) fn view(&self, shown: &mut ShownBytes) -> AgentsView {
        let iterations = self.iterations.iter();
        AgentsView {
            floor: self.floor,
            iterations: iterations
                .map(|(_, iteration)| within(iteration, shown))
                .collect(),
            omitted: self.omitted,
        }
    }
}

/// An iteration with as much of its texts as a page has room for.
fn within(iteration: &IterationView, shown: &mut ShownBytes) -> IterationView {
    let mut out = iteration.clone();
    let mut cut = |text: &mut String| *text = shown.text(text);
    out.reason.iter_mut().for_each(&mut cut);
    let errors = out
        .handoffs
        .iter_mut()
        .flat_map(|handoff| &mut handoff.error);
    errors.for_each(&mut cut);
    let criteria = out.checks.iter_mut().flat_map(|check| &mut check.criteria);
    criteria.for_each(&mut cut);
    out
}

fn check(critic: &str, verification_subject: &VerificationSubject) -> CheckView {
    CheckView {
        critic: critic.to_owned(),
        child: match verification_subject {
            VerificationSubject::Decision { .. } => None,
            VerificationSubject::Output { child, .. } => Some(child.to_string()),
        },
        ..CheckView::default()
    }
}
