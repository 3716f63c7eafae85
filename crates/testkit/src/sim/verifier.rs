//! Supervised workflows whose results are verified, and the invariants of every verdict.

use super::supervised;
use crate::workflow_builder::wf;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::{
    AgentEventKind, Event, HandoffStep, RecordedEvent, RunId, RunStatus, Seq, VerificationSubject,
    VerifierVerdict,
};

pub(super) const CHECKED: &str = "conformance-checked-workers";
const VERIFIER: &str = "judge";

/// A verifier that is a workflow: it is slow, may fail, and returns one verdict.
pub(super) fn verifier_workflow(rng: &mut SmallRng) -> Value {
    let flow = wf(VERIFIER).variable("verdict", json!("nothing yet"));
    let flow = match rng.random_range(0..3) {
        0 => flow.http("think", 2),
        1 => flow.delay("think", rng.random_range(1..1_500)),
        _ => flow.noop("think"),
    };
    let verdict = verdict(rng);
    flow.node(
        "say",
        "core.setVariable",
        json!({"name": "verdict", "value": verdict}),
    )
    .path("think say")
    .document()
}

/// A supervisor whose every output and end is verified.
pub(super) fn checked(rng: &mut SmallRng, workers: &[&str]) -> Value {
    let mut verifier = json!({"agentId": "core.critic", "over": ["terminate", "output"]});
    match rng.random_range(0..3) {
        0 => verifier["workflowId"] = json!(VERIFIER),
        1 => {
            verifier["endpoint"] = json!({
                "url": "http://critic.test/",
                "retry": {"maxAttempts": 2, "backoff": "fixed", "backoffMs": 200},
            });
        }
        _ => {
            let verdicts: Vec<Value> = (0..6).map(|_| verdict(rng)).collect();
            verifier["mockVerdicts"] = json!(verdicts);
        }
    }
    let mut plan: Vec<Value> = (0..rng.random_range(0..3))
        .map(|_| supervised::decision(rng, workers))
        .collect();
    plan.push(json!({"kind": "terminate", "reason": "done"}));
    let lead = json!({"mockDispatchPlan": plan, "verifier": verifier, "iterationCap": 6});
    let mut flow = wf(CHECKED)
        .variable("v", json!("default"))
        .node("lead", "core.orchestrator.supervisor", lead)
        .node("send", "core.dispatch", supervised::dispatch(rng));
    match rng.random_range(0..5) {
        0 => {
            let settings = json!({"timeoutMs": rng.random_range(100..3_000)});
            flow = flow.with("settings", settings);
        }
        // The workflow continues after errors; a verdict is not an error.
        1 => flow = flow.with("settings", json!({"onError": "continue"})),
        _ => {}
    }
    flow.path("lead send lead").document()
}

fn verdict(rng: &mut SmallRng) -> Value {
    let verdict = ["pass", "pass", "revise", "fail"][rng.random_range(0..4)];
    if rng.random_bool(0.5) {
        json!(verdict)
    } else {
        json!({"verdict": verdict, "confidence": 0.8, "feedback": "as before"})
    }
}

/// One verdict for each result; before it nothing is merged and nothing ends.
pub(super) fn check_verdicts(
    run: &RunId,
    status: RunStatus,
    log: &[RecordedEvent],
) -> Result<(), String> {
    let mut ends: BTreeMap<Seq, VerifierVerdict> = BTreeMap::new();
    let mut outputs: BTreeMap<&RunId, VerifierVerdict> = BTreeMap::new();
    let mut newest = None;
    for recorded in log {
        match &recorded.event {
            Event::OrchestratorDecided { .. } => newest = Some(recorded.seq),
            Event::Agent(fact) => {
                let AgentEventKind::Verified {
                    verification_subject,
                    verdict,
                    ..
                } = &fact.kind
                else {
                    continue;
                };
                let before = match verification_subject {
                    VerificationSubject::Decision { decided } => ends.insert(*decided, *verdict),
                    VerificationSubject::Output { child, .. } => outputs.insert(child, *verdict),
                };
                if before.is_some() {
                    return Err(format!("{run}: a second verdict at {}", recorded.seq));
                }
            }
            Event::Handoff(handoff) => {
                if let HandoffStep::Harvested { child, .. } = &handoff.step
                    && outputs.get(child) != Some(&VerifierVerdict::Pass)
                {
                    return Err(format!("{run} merged {child} without a passing verdict"));
                }
            }
            _ => {}
        }
    }
    let passed = newest.and_then(|decided| ends.get(&decided)) == Some(&VerifierVerdict::Pass);
    if status == RunStatus::Completed && !passed {
        return Err(format!("{run} completed without a passing verdict"));
    }
    Ok(())
}
