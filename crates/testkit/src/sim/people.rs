//! People and external events: questions are answered validly and invalidly, twice and too late,
//! and events arrive before a node waits for them.

use super::Simulation;
use super::client::tenant;
use super::decisions::{MAX_DECISIONS, Op};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{
    Command, DeciderSnapshot, DecisionAuthorization, DecisionPolicy, Denial, NodeId, Principal,
    Reply, RunId,
};
use tandem_runtime::{
    AccessCheck, Fault, InterruptFilter, InterruptRow, Page, ProposedAnswer, Runtime, SubmitError,
};

pub(super) const EVENT: &str = "happened";

/// Every open question of every run.
pub(super) async fn open_questions(runtime: &Runtime) -> Result<Vec<InterruptRow>, Fault> {
    let filter = InterruptFilter {
        open: Some(true),
        ..InterruptFilter::default()
    };
    let page = Page {
        before: None,
        limit: usize::MAX,
    };
    let listing = runtime.questions(&tenant(), &filter, &page).await?;
    Ok(listing.rows.into_iter().map(|(_, row)| row).collect())
}

/// Every question of the simulation is one of a run.
fn run_and_node(row: &InterruptRow) -> (RunId, NodeId) {
    row.run_and_node().expect("runs ask all questions")
}

/// People answer a question, perhaps several at once, perhaps one without permission.
pub(super) async fn answer(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    let Ok(open) = open_questions(runtime).await else {
        return;
    };
    let Some(row) = open.get(rng.random_range(0..open.len().max(1))) else {
        return;
    };
    let (value, action) = match rng.random_range(0..10) {
        0 => (json!({"nonsense": true}), None),
        1 => (json!({"action": "reject"}), Some("reject")),
        _ => (valid_answer(&row.kind), Some("accept")),
    };
    let many = if rng.random_bool(0.3) { 10 } else { 1 };
    let allowed = rng.random_bool(0.9);
    // Sometimes the same people again, so that votes are repeated.
    let first = [0, 0, 5][rng.random_range(0..3)];
    if sim.decisions.lock().tries(&row.interrupt) + many > MAX_DECISIONS {
        return;
    }
    let access_check: AccessCheck = Arc::new(move |policy: &DecisionPolicy, _| {
        if allowed {
            DecisionAuthorization::Granted(DeciderSnapshot {
                groups: policy.groups.clone(),
                ..DeciderSnapshot::default()
            })
        } else {
            DecisionAuthorization::Denied(Denial::NotEligible)
        }
    });
    // Names the question, so that the answer to one question never reaches the next.
    let deciding = (first..first + many).map(|n| {
        let decision = DecisionAttempt {
            by: format!("person-{n}"),
            value: value.clone(),
            action,
            allowed,
            access_check: Arc::clone(&access_check),
        };
        async {
            if let Ok(reply) = decide(sim, runtime, row, decision).await {
                let mut observations = sim.observations.lock();
                let (run, _) = run_and_node(row);
                observations.replies.push((run, reply));
            }
        }
    });
    futures_util::future::join_all(deciding).await;
}

/// One attempt to decide.
struct DecisionAttempt {
    by: String,
    value: Value,
    /// `None` for an invalid answer.
    action: Option<&'static str>,
    allowed: bool,
    access_check: AccessCheck,
}

/// Decides and records the time of the call and its response. After a crash the call has no
/// response.
async fn decide(
    sim: &Simulation,
    runtime: &Runtime,
    row: &InterruptRow,
    decision: DecisionAttempt,
) -> Result<Reply, SubmitError> {
    let op = Op::Decide {
        by: decision.by.clone(),
        action: decision.action,
        allowed: decision.allowed,
    };
    let (run, node) = run_and_node(row);
    let proposal = ProposedAnswer {
        node,
        interrupt: Some(row.interrupt.clone()),
        value: decision.value,
        digest: None,
        by: Some(Principal::new(decision.by)),
    };
    let call = sim.decisions.lock().decides(&row.interrupt, op);
    let result = runtime
        .decide(
            &tenant().into(),
            &run,
            proposal,
            decision.access_check,
            None,
        )
        .await;
    let mut history = sim.decisions.lock();
    history.decided(&row.interrupt, call, &result);
    result
}

pub(super) fn valid_answer(kind: &str) -> Value {
    match kind {
        "approval" => json!({"action": "accept"}),
        "clarification" => json!({"answers": {"q": "so"}}),
        _ => json!({"n": 1}),
    }
}

/// An external event, perhaps before a node waits for it, perhaps sent twice.
pub(super) async fn event(sim: &Simulation, runtime: &Runtime, run: RunId, rng: &mut SmallRng) {
    let command = Command::DeliverEvent {
        event_id: format!("e{}", rng.random_range(0..4)),
        event_type: EVENT.to_owned(),
        payload: [("n".to_owned(), json!(rng.random_range(1..3)))]
            .into_iter()
            .collect(),
        by: None,
    };
    for _ in 0..rng.random_range(1..3) {
        let result = runtime
            .submit(&tenant().into(), &run, command.clone(), None)
            .await;
        if let Ok(reply) = result {
            sim.observations.lock().replies.push((run.clone(), reply));
        }
    }
}

/// Answers everything that is still open, so that every run can end.
pub(super) async fn answer_everything(sim: &Simulation, runtime: &Runtime) -> Result<(), String> {
    let open = open_questions(runtime)
        .await
        .map_err(|fault| format!("the store failed without an injected fault: {fault}"))?;
    // Two people, because some questions need two votes.
    let asked = open.iter().flat_map(|row| [(row, "ana"), (row, "ben")]);
    for (row, who) in asked {
        let decision = DecisionAttempt {
            by: who.to_owned(),
            value: valid_answer(&row.kind),
            action: Some("accept"),
            allowed: true,
            access_check: Arc::new(|_: &DecisionPolicy, _| {
                DecisionAuthorization::Granted(DeciderSnapshot::default())
            }),
        };
        match decide(sim, runtime, row, decision).await {
            Ok(Reply::Resolved { .. }) | Err(SubmitError::Refused(_)) => {}
            Ok(other) => return Err(format!("unexpected reply to an answer: {other:?}")),
            Err(error) => return Err(format!("a question could not be answered: {error}")),
        }
    }
    Ok(())
}
