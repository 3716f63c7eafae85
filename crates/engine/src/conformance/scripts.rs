//! Settings of a node that replace a live agent, verifier or person by a script. They are refused in
//! workflows that are not tests.

use crate::definition::Problem;
use crate::definition::admission::Fault;
use crate::node::supervisor::fraction;
use crate::node::{
    DecisionSource, OrchestratorDecision, ParseContext, VerifierReport, VerifierSource,
};
use serde_json::{Value, json};
use tandem_record::Object;

/// The n-th decision of a supervisor; two names for the same list.
pub(crate) const DISPATCH_PLAN: &str = "mockDispatchPlan";
pub(crate) const DECISIONS: &str = "mockDecisions";
/// The confidence of a supervisor, in place of a live agent's.
pub(crate) const CONFIDENCE: &str = "mockConfidence";
/// The decision of a supervisor in every iteration.
pub(crate) const PENDING_DECISION: &str = "mockPendingDecision";
/// The n-th verdict of a verifier.
pub(crate) const VERDICTS: &str = "mockVerdicts";
/// A conversation that holds its turns with itself.
pub(crate) const AUTO_RESUME: &str = "mockAutoResume";
/// Maximum number of turns of a conversation with itself.
const MAX_SCRIPTED_TURNS: u64 = 100;

/// Refuses a script in a workflow that is not a test.
fn refuse_script<T>(key: &str, cx: &mut ParseContext<'_>) -> Option<T> {
    let mut problem = Problem::new(
        format!("{}/config/{key}", cx.path),
        "is a test hook, for conformance workflows only",
    )
    .with_reason("typeId_refused");
    problem.node = Some(cx.node.clone());
    problem.type_id = Some("core.orchestrator.supervisor".to_owned());
    cx.problems.push(problem);
    None
}

/// Whether a supervisor may have the scripts that its configuration names.
pub(crate) fn admit_supervisor_scripts(config: &Object, cx: &mut ParseContext<'_>) -> Option<()> {
    let keys = [DISPATCH_PLAN, DECISIONS, CONFIDENCE, PENDING_DECISION];
    match keys.iter().find(|key| config.contains_key(**key)) {
        Some(key) if !cx.test_hook() => refuse_script(key, cx),
        _ => Some(()),
    }
}

/// The scripted decisions of a supervisor, if it has any.
pub(crate) fn scripted_decisions(
    config: &Object,
    cx: &mut ParseContext<'_>,
) -> Option<Option<DecisionSource>> {
    if let Some(pending) = config.get(PENDING_DECISION) {
        let pending = decision(pending, PENDING_DECISION, cx)?;
        return Some(Some(DecisionSource::Pending(pending)));
    }
    for key in [DISPATCH_PLAN, DECISIONS] {
        match config.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Array(plan)) => {
                let read = |(i, d)| decision(d, &format!("{key}/{i}"), cx);
                let plan: Option<Vec<_>> = plan.iter().enumerate().map(read).collect();
                return Some(Some(DecisionSource::Plan(plan?)));
            }
            Some(_) => return cx.bad(key, "must be a list of decisions"),
        }
    }
    Some(None)
}

fn decision(value: &Value, key: &str, cx: &mut ParseContext<'_>) -> Option<OrchestratorDecision> {
    match OrchestratorDecision::read(value) {
        Ok(decision) => Some(decision),
        Err((path, message)) => cx.bad(&format!("{key}{path}"), message),
    }
}

/// The protocol's own test workflow without any script makes one known step and ends. It is
/// recognised by its id, because the caller who registered a document is not known when it is read
/// again.
pub(crate) fn implicit_plan(cx: &mut ParseContext<'_>) -> Option<DecisionSource> {
    let worker = json!({"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]});
    let once = OrchestratorDecision::read(&worker).expect("a sound decision");
    cx.implicit_hook().then(|| DecisionSource::Plan(vec![once]))
}

/// The scripted confidence of a supervisor.
pub(crate) fn scripted_confidence(
    config: &Object,
    cx: &mut ParseContext<'_>,
) -> Option<Option<f64>> {
    fraction(config, CONFIDENCE, cx)
}

/// The scripted verdicts of a verifier.
pub(crate) fn scripted_verdicts(
    config: &Object,
    cx: &mut ParseContext<'_>,
) -> Option<VerifierSource> {
    if !cx.test_hook() {
        return refuse_script(VERDICTS, cx);
    }
    let Some(Value::Array(listed)) = config.get(VERDICTS) else {
        return cx.bad(VERDICTS, "must be a list of verdicts");
    };
    let read = |(i, value): (usize, &Value)| match VerifierReport::read(value) {
        Ok(report) => Some(report),
        Err(message) => cx.bad(&format!("{VERDICTS}/{i}"), message),
    };
    let plan: Option<Vec<_>> = listed.iter().enumerate().map(read).collect();
    plan.map(VerifierSource::Plan)
}

/// How many turns a conversation holds with itself, if it does.
pub(crate) fn scripted_turns(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<u64>> {
    let scripted = cx.flag(config, AUTO_RESUME, false)?;
    if scripted && !cx.test_hook() {
        return cx.bad(AUTO_RESUME, "is for conformance workflows only");
    }
    let turns = cx.whole(config, "turnCount", 1)?.unwrap_or(1);
    Some(scripted.then(|| turns.min(MAX_SCRIPTED_TURNS)))
}

/// The scripted decisions of a supervisor are checked when its workflow is registered.
pub(crate) fn decision_faults(config: &Object) -> Vec<Fault> {
    let pending = config.get(PENDING_DECISION);
    let pending = pending.map(|d| (format!("/{PENDING_DECISION}"), d));
    let plans = [DISPATCH_PLAN, DECISIONS].into_iter();
    let planned = plans.flat_map(|key| {
        let plan = config.get(key).and_then(Value::as_array);
        let plan = plan.into_iter().flatten().enumerate();
        plan.map(move |(i, decision)| (format!("/{key}/{i}"), decision))
    });
    pending
        .into_iter()
        .chain(planned)
        .filter_map(|(at, decision)| {
            let (below, message) = OrchestratorDecision::read_strict(decision).err()?;
            Some((format!("{at}{below}"), message))
        })
        .collect()
}
