//! Forks of flow runs (Z-221). A fork is a detached run: it has no session, sends nothing and calls nothing. Its code
//! is run again with the recorded results; what it does differently ends it.
//!
//! A replay uses the code its source was started with, a branch the code that the agent has now.

use super::agent_host::{AgentHost, RebuildError};
use crate::fork::{ForkRequest, Unforkable};
use crate::runtime::Runtime;
use crate::submit::{CommandOutcome, IdempotencyRequest, SubmitError};
use crate::submit_stream::CommitRecord;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::flow_run::FlowRunCommand;
use tandem_record::conversation::{FlowFailure, FlowRecord, FlowRunStart};
use tandem_record::{DefinitionHash, ForkMode, ForkedFrom, Recorded, RunId, StreamId, Timestamp};
use tandem_store::{Fault, StoredRun};

type Journal = Vec<Recorded<FlowRecord>>;

impl Runtime {
    pub(crate) async fn fork_flow_run(
        &self,
        source: &StoredRun,
        request: ForkRequest,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<RunId, SubmitError> {
        let from_seq = request.from_seq;
        if from_seq > source.head {
            let last = source.head;
            return Err(Unforkable::BeyondEnd { from_seq, last }.into());
        }
        let conversations = self.conversations().ok_or(SubmitError::NotFound)?.clone();
        let journal = self.flow_journal(&source.row.run_id).await?;
        let Some(FlowRecord::Started(start)) = journal.first().map(|first| &first.event) else {
            return Err(Unforkable::NotRetained {
                source_run: source.row.run_id.clone(),
                from_seq,
                reason: "event_log_unavailable",
            }
            .into());
        };
        let agents = Arc::clone(conversations.agents());
        let code = self.code_of_fork(&*agents, start, request.mode).await?;
        let unique = self.inner.config.ids.run_id();
        let unique = unique.as_str().trim_start_matches("run-");
        let fork = RunId::from(format!("flow-{unique}"));
        let now = self.clock().now();
        let new_start = FlowRunStart {
            run_id: fork.clone(),
            session_id: None,
            parent: None,
            version: code.version.clone(),
            forked_from: Some(Box::new(ForkedFrom {
                run_id: source.row.run_id.clone(),
                from_seq,
                mode: request.mode,
                at: now,
                source_began_at: None,
                flow_results: std::collections::BTreeMap::new(),
            })),
            ..(**start).clone()
        };
        let tenant = &source.row.tenant;
        let work = &self.inner.decision_work;
        let permit = work.acquire_for(Some(tenant), Some(&start.agent_id)).await;
        let records = permit
            .run(move || replayed(&*agents, &code, journal, new_start))
            .await?;
        let command = FlowRunCommand::Copy { records };
        let stored = |(): &()| -> Vec<CommitRecord> {
            let outcome = CommandOutcome::Created(&fork);
            let record = idempotency.as_ref();
            let record = record.and_then(|request| self.idempotency_record(request, &outcome));
            record.map(CommitRecord::Response).into_iter().collect()
        };
        let runs = &conversations.sessions.settings.flow_runs;
        let stream = StreamId::of_run(&fork);
        self.submit_command(runs, &stream, command, Some(&stored))
            .await?;
        Ok(fork)
    }

    async fn code_of_fork(
        &self,
        agents: &dyn AgentHost,
        start: &FlowRunStart,
        mode: ForkMode,
    ) -> Result<ForkCode, Fault> {
        let current = || {
            let agent = agents.agent(&start.agent_id)?;
            let version = agent.flows.get(start.flow_id.as_str())?.version.clone()?;
            let source = agents.flow_source(&start.agent_id, &version);
            Some(ForkCode { version, source })
        };
        if let Some(code) = current().filter(|_| mode == ForkMode::Branch) {
            return Ok(code);
        }
        let hash = DefinitionHash::from(start.version.clone());
        Ok(ForkCode {
            version: start.version.clone(),
            source: self.store().definition(&hash).await?,
        })
    }
}

/// The code that a fork runs.
struct ForkCode {
    version: String,
    /// Absent for a flow in Rust.
    source: Option<Arc<str>>,
}

/// The journal of a fork: that of its source as far as the code does the same, and its end.
fn replayed(
    agents: &dyn AgentHost,
    code: &ForkCode,
    journal: Journal,
    start: FlowRunStart,
) -> Result<Vec<(Timestamp, FlowRecord)>, Fault> {
    let source = match &journal[0].event {
        FlowRecord::Started(start) => start.run_id.clone(),
        _ => unreachable!("the journal begins with its start"),
    };
    let fork = start.run_id.clone();
    let is_end = |record: &FlowRecord| {
        matches!(record, FlowRecord::Ended { .. } | FlowRecord::Failed { .. })
    };
    let (mut body, mut end) = (journal, None);
    // A run that diverged earlier is tried again.
    body.retain(|record| !matches!(record.event, FlowRecord::Diverged { .. }));
    if body.last().is_some_and(|last| is_end(&last.event)) {
        end = body.pop();
    }
    // The code sees its new version and no session-bound start: everything it is given is the same.
    let mut seen = body.clone();
    if let FlowRecord::Started(start) = &mut seen[0].event {
        start.version.clone_from(&code.version);
    }
    let outcome = match agents.rebuild_program(code.source.as_deref(), &seen) {
        Ok(_) => Outcome::Same,
        Err(RebuildError::Diverged {
            expected: Value::Null,
            actual,
            ..
        }) if is_same_end(end.as_ref().map(|end| &end.event), &actual) => Outcome::Same,
        Err(RebuildError::Diverged {
            step,
            expected,
            actual,
        }) => Outcome::Different {
            step,
            expected,
            actual,
        },
        Err(RebuildError::Failed(failure)) => Outcome::Unusable(failure),
    };
    let last = end.as_ref().or(body.last()).map_or(Timestamp(0), |r| r.at);
    let copy = |record: &Recorded<FlowRecord>| match &record.event {
        FlowRecord::Started(_) => (record.at, FlowRecord::Started(Box::new(start.clone()))),
        other => (record.at, renamed(other, &source, &fork)),
    };
    let failed = |code: &str, message: &str| {
        let failure = FlowFailure {
            code: code.to_owned(),
            message: message.to_owned(),
            details: None,
        };
        (last, FlowRecord::Failed { failure })
    };
    let mut records: Vec<_> = body.iter().map(copy).collect();
    match (outcome, end) {
        (Outcome::Same, Some(end)) => records.push(copy(&end)),
        (Outcome::Same, None) => records.push(failed(
            "replay_source_missing",
            "the source recorded no outcome",
        )),
        (
            Outcome::Different {
                step,
                expected,
                actual,
            },
            _,
        ) => {
            records.truncate(before_step(&body, step));
            let diverged = FlowRecord::Diverged {
                step,
                expected,
                actual,
            };
            records.push((last, diverged));
            let message = "the code does something else than the journal of its source";
            records.push(failed("replay_diverged", message));
        }
        (Outcome::Unusable(failure), _) => {
            records.truncate(1);
            records.push((last, FlowRecord::Failed { failure }));
        }
    }
    Ok(records)
}

enum Outcome {
    Same,
    Different {
        step: u32,
        expected: Value,
        actual: Value,
    },
    /// The code cannot be loaded.
    Unusable(FlowFailure),
}

/// Whether the code ended as its source did. The rest of an end from outside is not the code's.
fn is_same_end(end: Option<&FlowRecord>, actual: &Value) -> bool {
    match end {
        Some(FlowRecord::Ended {
            reason,
            cancelled: false,
        }) => {
            let returned = actual.get("returned");
            let given = returned.and_then(|value| value.get("reason")?.as_str());
            returned.is_some() && given == reason.as_deref()
        }
        // The host stopped the code at a limit, wherever it was.
        Some(FlowRecord::Failed { failure }) if failure.code == "flow_limit" => true,
        Some(FlowRecord::Failed { failure }) => actual["failed"]["code"] == json!(failure.code),
        _ => false,
    }
}

/// The number of records before the effect of a step.
fn before_step(journal: &[Recorded<FlowRecord>], step: u32) -> usize {
    let at = journal.iter().position(
        |record| matches!(&record.event, FlowRecord::Effect { step: of, .. } if *of == step),
    );
    at.unwrap_or(journal.len())
}

/// Interrupts are named after their run.
fn renamed(record: &FlowRecord, source: &RunId, fork: &RunId) -> FlowRecord {
    let mut record = record.clone();
    match &mut record {
        FlowRecord::Paused { pause, .. } => pause.rename_run(source, fork),
        FlowRecord::Resumed { interrupt_id, .. } => interrupt_id.rename_run(source, fork),
        _ => {}
    }
    record
}
