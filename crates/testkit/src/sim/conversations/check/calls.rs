//! Calls of tools, models and hooks, and workflows that flows start.

use super::{Logs, SessionLog, ensure, store_failed};
use crate::sim::conversations::Conversations;
use crate::sim::conversations::outside::OutsideCall;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{
    FlowRecord, RequestedWork, SessionEventBody as Body, SessionWork,
};
use tandem_record::{EffectId, Event, RunId, RunStatus};
use tandem_runtime::Runtime;

type Calls<'a> = BTreeMap<&'a EffectId, Vec<&'a OutsideCall>>;

/// Z-2, Z-21, Z-59, Z-185
pub(super) fn check(sim: &Conversations, logs: &Logs) -> Result<(), String> {
    let happened = sim.outside.happened.lock();
    let mut calls = Calls::new();
    for call in &happened.calls {
        calls.entry(&call.key).or_default().push(call);
    }
    check_repetitions(sim, logs, &calls)?;
    for session in logs.sessions.values() {
        check_outcomes(session, &calls)?;
        for run in session.flow_runs.keys() {
            check_tool_results(session, run, &calls)?;
        }
    }
    Ok(())
}

fn requested(log: &SessionLog) -> impl Iterator<Item = &RequestedWork> {
    log.events
        .iter()
        .filter_map(|event| match &event.event.body {
            Body::WorkRequested(work) => Some(&**work),
            _ => None,
        })
}

/// A call is one that a log requests. What must not be repeated is called once; what may be repeated is asked for
/// the same and gives the same.
fn check_repetitions(sim: &Conversations, logs: &Logs, calls: &Calls<'_>) -> Result<(), String> {
    let mut works = BTreeMap::new();
    for session in logs.sessions.values() {
        let agent = sim.outside.spec(&session.agent);
        for work in requested(session) {
            let fresh = works.insert(&work.effect_id, (work, agent)).is_none();
            ensure(fresh, || format!("{} is requested twice", work.effect_id))?;
        }
    }
    for (key, calls) in calls {
        let Some((work, agent)) = works.get(key) else {
            return Err(format!("{key} was called and is in no log: {calls:?}"));
        };
        let SessionWork::Tool { name, args } = &work.work else {
            continue;
        };
        let repeatable = agent.tool(name).is_some_and(|tool| tool.idempotent);
        ensure(repeatable || calls.len() == 1, || {
            format!("{name} was called {} times with {key}", calls.len())
        })?;
        let values: BTreeSet<String> = calls
            .iter()
            .filter_map(|call| Some(call.value.as_ref()?.to_string()))
            .collect();
        let same = calls
            .iter()
            .all(|call| call.name == *name && call.args == *args);
        ensure(same && values.len() <= 1, || {
            format!("{key} was not the same each time: {calls:?}")
        })?;
    }
    Ok(())
}

/// An outcome is recorded once, and is one that the outside gave.
fn check_outcomes(log: &SessionLog, calls: &Calls<'_>) -> Result<(), String> {
    let mut finished = BTreeSet::new();
    let mut last = None;
    for event in &log.events {
        match &event.event.body {
            Body::WorkFinished { effect_id } => {
                ensure(finished.insert(effect_id), || {
                    format!("{effect_id} is finished twice")
                })?;
                last = Some(effect_id);
            }
            Body::ModelAnswered { answer, .. } => {
                let key = last.ok_or_else(|| format!("{} has an answer of nothing", log.id))?;
                let given = calls.get(key).into_iter().flatten();
                let answer = json!(answer);
                let was_given = given
                    .into_iter()
                    .any(|call| call.value.as_ref() == Some(&answer));
                ensure(was_given, || format!("{key} is recorded with {answer}"))?;
                last = None;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a flow was handed is what the tool gave, or that nobody knows.
fn check_tool_results(log: &SessionLog, run: &RunId, calls: &Calls<'_>) -> Result<(), String> {
    let mut tool = None;
    for record in &log.flow_runs[run].journal {
        match &record.event {
            FlowRecord::Effect { step, effect, .. } => {
                tool = (effect["type"] == "tool").then_some(*step);
            }
            FlowRecord::Result { step, value, .. } if tool == Some(*step) => {
                let key = EffectId::from(format!("{run}:{step}"));
                let value = value.as_ref().filter(|value| value["ok"] != false);
                let given = calls.get(&key).into_iter().flatten();
                let was_given = given.into_iter().any(|call| call.value.as_ref() == value);
                ensure(value.is_none() || was_given, || {
                    format!("{key} is recorded with {value:?}")
                })?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A flow starts one run for each effect, and is told how that run ended.
pub(super) async fn check_workflows(runtime: &Runtime, logs: &Logs) -> Result<(), String> {
    let mut waited = BTreeSet::new();
    let mut status = BTreeMap::new();
    for row in logs.runs.iter().filter(|row| !row.run_id.is_flow_run()) {
        let run = &row.run_id;
        status.insert(run.to_string(), row.status);
        let page = runtime.events(run, None, 1).await.map_err(store_failed)?;
        let first = page.and_then(|page| page.events.into_iter().next());
        let Some(Event::RunStarted { request, .. }) = first.map(|first| first.event) else {
            return Err(format!("{run} does not begin with its start"));
        };
        if let Some(waiting) = &request.waiting_session {
            let id = waiting.interrupt_id.clone();
            let session = logs.sessions.get(&waiting.session_id);
            let same_tenant = session.is_some_and(|session| session.tenant == row.tenant);
            ensure(same_tenant && waited.insert(id), || {
                format!("{run} is another run of {waiting:?}")
            })?;
        }
    }
    let starts = |work: &&RequestedWork| matches!(work.work, SessionWork::StartWorkflow(_));
    let sessions = logs.sessions.values();
    let requests: usize = sessions.map(|s| requested(s).filter(starts).count()).sum();
    ensure(status.len() <= requests, || {
        format!("{} runs were started by {requests} requests", status.len())
    })?;
    for (run, flow) in logs.sessions.values().flat_map(|s| &s.flow_runs) {
        for record in &flow.journal {
            let FlowRecord::Result {
                value: Some(result),
                ..
            } = &record.event
            else {
                continue;
            };
            check_workflow_result(run, result, &status)?;
        }
    }
    Ok(())
}

fn check_workflow_result(
    run: &RunId,
    result: &Value,
    status: &BTreeMap<String, RunStatus>,
) -> Result<(), String> {
    let Some(started) = result["runId"].as_str() else {
        return Ok(());
    };
    let known = status.get(started);
    let fits = match result["status"].as_str() {
        Some("completed") => known == Some(&RunStatus::Completed),
        Some("failed") => known == Some(&RunStatus::Failed),
        Some("cancelled") => known == Some(&RunStatus::Cancelled),
        _ => known.is_some(),
    };
    ensure(fits, || {
        format!("{run} was told {result}, but the run is {known:?}")
    })
}
