//! Random supervised workflows, and the invariants of every handoff in their logs.

use crate::workflow_builder::wf;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::{Cause, Event, HandoffStep, RecordedEvent, RunId, RunStatus, Seq};

pub(super) const SUPERVISED: &str = "conformance-supervised";

/// A supervisor with a plan, and a dispatch node that carries it out in one of several modes.
pub(super) fn workflow(rng: &mut SmallRng, workers: &[&str]) -> Value {
    let iterations = rng.random_range(1..4);
    let mut plan: Vec<Value> = (0..iterations).map(|_| decision(rng, workers)).collect();
    if rng.random_bool(0.5) {
        plan.push(json!({"kind": "terminate", "reason": "done"}));
    }
    let lead = json!({"mockDispatchPlan": plan});
    let mut flow = wf(SUPERVISED)
        .variable("v", json!("default"))
        .node("lead", "core.orchestrator.supervisor", lead)
        .node("send", "core.dispatch", dispatch(rng));
    if rng.random_bool(0.2) {
        let settings = json!({"timeoutMs": rng.random_range(100..3_000)});
        flow = flow.with("settings", settings);
    }
    flow.path("lead send lead").document()
}

pub(super) fn decision(rng: &mut SmallRng, workers: &[&str]) -> Value {
    let one = |rng: &mut SmallRng| workers[rng.random_range(0..workers.len())].to_owned();
    let named: Vec<String> = (0..rng.random_range(1..4)).map(|_| one(rng)).collect();
    json!({"kind": "next-worker", "nextWorkerIds": named})
}

pub(super) fn dispatch(rng: &mut SmallRng) -> Value {
    let mut config = json!({"inputMapping": {"v": "v"}, "outputMapping": {"v": "v"}});
    if rng.random_bool(0.5) {
        config["fanOutPolicy"] = json!("parallel");
        let failure = ["collect", "fail-fast", "absorb"][rng.random_range(0..3)];
        let mut join = json!({"onChildFailure": failure});
        match rng.random_range(0..4) {
            0 => join["mode"] = json!("first"),
            1 => join["mode"] = json!("race"),
            2 => {
                join["mode"] = json!("quorum");
                join["quorum"] = json!(rng.random_range(1..4));
            }
            _ => {}
        }
        config["joinPolicy"] = join;
        if rng.random_bool(0.5) {
            config["maxConcurrency"] = json!(rng.random_range(1..3));
        }
    }
    config
}

/// Every handoff is an unbroken chain from its decision to its end, and its recorded outcome is the
/// child's real outcome.
pub(super) fn check_handoffs(
    run: &RunId,
    status: RunStatus,
    log: &[RecordedEvent],
    child_status: impl Fn(&RunId) -> Option<RunStatus>,
) -> Result<(), String> {
    let mut newest: BTreeMap<(String, Seq, u32), (&HandoffStep, Seq)> = BTreeMap::new();
    let mut decided: BTreeMap<Seq, Seq> = BTreeMap::new();
    let mut children: Vec<&RunId> = Vec::new();
    for recorded in log {
        let Event::Handoff(handoff) = &recorded.event else {
            continue;
        };
        let Some(Cause::Event(cause)) = recorded.cause else {
            return Err(format!(
                "{run}: a handoff without a cause at {}",
                recorded.seq
            ));
        };
        let broken = || {
            let phase = handoff.step.phase();
            Err(format!(
                "{run}: {phase} at {} breaks its chain",
                recorded.seq
            ))
        };
        // Chains are distinguished by the decision they start from.
        let root = *decided.get(&cause).unwrap_or(&cause);
        decided.insert(recorded.seq, root);
        let key = (handoff.node.to_string(), root, handoff.index);
        let before = newest.get(&key).copied();
        let follows = match (&handoff.step, before) {
            // A retried node hands over again.
            (HandoffStep::Began, _) => {
                let cause = log.get(usize::try_from(cause.0).unwrap_or(usize::MAX));
                matches!(
                    cause.map(|c| &c.event),
                    Some(Event::OrchestratorDecided { .. })
                )
            }
            (HandoffStep::Succeeded { .. } | HandoffStep::Failed { .. }, Some((step, at))) => {
                matches!(step, HandoffStep::Began) && at == cause
            }
            (
                HandoffStep::ChildCompleted { .. }
                | HandoffStep::ChildFailed { .. }
                | HandoffStep::ChildCancelled { .. },
                Some((step, at)),
            ) => matches!(step, HandoffStep::Succeeded { .. }) && at == cause,
            (HandoffStep::Harvested { .. }, Some((step, at))) => {
                matches!(step, HandoffStep::ChildCompleted { .. }) && at == cause
            }
            (_, None) => false,
        };
        if !follows {
            return broken();
        }
        let expected = match &handoff.step {
            HandoffStep::ChildCompleted { .. } => Some(RunStatus::Completed),
            HandoffStep::ChildFailed { .. } => Some(RunStatus::Failed),
            HandoffStep::ChildCancelled { .. } => Some(RunStatus::Cancelled),
            _ => None,
        };
        if let (Some(expected), Some(child)) = (expected, handoff.step.child())
            && child_status(child).is_some_and(|found| found != expected)
        {
            return Err(format!(
                "{run} says {child} is {expected:?}, which it is not"
            ));
        }
        if let HandoffStep::Succeeded { child, .. } = &handoff.step {
            if children.contains(&child) {
                return Err(format!("{run} started {child} twice"));
            }
            children.push(child);
        }
        newest.insert(key, (&handoff.step, recorded.seq));
    }
    let open = newest
        .values()
        .filter(|(step, _)| matches!(step, HandoffStep::Began | HandoffStep::Succeeded { .. }));
    if status == RunStatus::Completed && open.count() > 0 {
        return Err(format!("{run} completed during a handoff"));
    }
    Ok(())
}
