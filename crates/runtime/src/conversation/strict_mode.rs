//! Strict mode (Z-217): after a turn the code of every flow run it drove is run again from its journal, in a fresh
//! program. Code that does something else is nondeterministic, and is reported before it is harmful.

use super::agent_host::RebuildError;
use super::session_machine::SessionMachine;
use super::settings::SessionSettings;
use super::stored_program::stored_program;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    FlowFailure, FlowRecord, FlowRef, Nondeterminism, SessionCommand, SessionEvent,
    SessionEventBody as Body,
};
use tandem_record::{Recorded, RunId, SessionId};
use tandem_store::Fault;

/// Runs that wait for their check. Each is checked by the worker that drove it; more are not kept.
const MAX_WAITING: usize = 1_000;

/// Flow runs that a committed turn drove, in sessions whose flows are checked.
#[derive(Default)]
pub(crate) struct StrictChecks(Mutex<Vec<(SessionId, FlowRef)>>);

impl StrictChecks {
    /// Notes the runs that a decision drove.
    pub(super) fn note(&self, session: &SessionId, events: &[Recorded<SessionEvent>]) {
        let mut waiting = self.0.lock();
        for event in events {
            let is_driven = matches!(
                event.event.body,
                Body::FlowStarted { .. }
                    | Body::FlowResumed { .. }
                    | Body::FlowEffectStarted { .. }
                    | Body::FlowEnded { .. }
                    | Body::FlowFailed { .. }
            );
            let Some(flow) = event.event.flow.as_ref().filter(|_| is_driven) else {
                continue;
            };
            let entry = (session.clone(), flow.clone());
            if waiting.len() < MAX_WAITING && !waiting.contains(&entry) {
                waiting.push(entry);
            }
        }
    }

    fn take(&self) -> Vec<(SessionId, FlowRef)> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl SessionSettings {
    /// Whether the flows of a session are run again.
    pub(super) fn is_strict_for(&self, session: &ChatSession) -> bool {
        let agent = || self.agents.agent(&session.start().agent_id);
        self.is_strict || agent().is_some_and(|agent| agent.strict)
    }
}

impl Runtime {
    /// Runs the flows again that turns drove, and reports those that do something else.
    pub(super) async fn check_driven_flows(
        &self,
        driver: &MachineDriver<SessionMachine>,
    ) -> Result<(), Fault> {
        for (session, flow) in driver.settings.strict_checks.take() {
            let run = flow.flow_run_id.clone();
            let Some(found) = self.nondeterminism_of(driver, &run, flow).await? else {
                continue;
            };
            tracing::warn!(
                %run, step = found.step, expected = %found.expected, actual = %found.actual,
                "a flow does not do the same each time"
            );
            let command = SessionCommand::ReportNondeterminism(Box::new(found));
            if let Err(error) = self.submit_to_session(&session, command).await {
                tracing::warn!(%run, %error, "nondeterminism cannot be recorded");
            }
        }
        Ok(())
    }

    async fn nondeterminism_of(
        &self,
        driver: &MachineDriver<SessionMachine>,
        run: &RunId,
        flow: FlowRef,
    ) -> Result<Option<Nondeterminism>, Fault> {
        let mut journal = self.flow_journal(run).await?;
        let is_diverged =
            |record: &Recorded<FlowRecord>| matches!(record.event, FlowRecord::Diverged { .. });
        if journal.iter().any(is_diverged) {
            return Ok(None);
        }
        let end = journal
            .pop_if(|last| {
                matches!(
                    last.event,
                    FlowRecord::Ended { .. } | FlowRecord::Failed { .. }
                )
            })
            .map(|last| last.event);
        let program = stored_program(self, &driver.settings, run, journal).await?;
        let (code_hash, rebuilt) = program;
        let (step, expected, actual) = match rebuilt {
            Ok(_) => return Ok(None),
            Err(RebuildError::Diverged { actual, .. }) if ends_so(end.as_ref(), &actual) => {
                return Ok(None);
            }
            Err(RebuildError::Diverged {
                step,
                expected,
                actual,
            }) => (step, expected, actual),
            Err(RebuildError::Failed(failure)) => match &end {
                Some(FlowRecord::Failed { failure: known }) if known.code == failure.code => {
                    return Ok(None);
                }
                _ => (0, serde_json::Value::Null, failed(&failure)),
            },
        };
        Ok(Some(Nondeterminism {
            flow,
            code_hash,
            step,
            expected,
            actual,
        }))
    }
}

/// Whether the code did at the end of its journal what ended the run.
fn ends_so(end: Option<&FlowRecord>, actual: &serde_json::Value) -> bool {
    match end {
        Some(FlowRecord::Ended { .. }) => actual.get("returned").is_some(),
        Some(FlowRecord::Failed { .. }) => {
            actual.get("failed").is_some() || actual.get("type").is_some()
        }
        _ => false,
    }
}

fn failed(failure: &FlowFailure) -> serde_json::Value {
    serde_json::json!({ "failed": failure })
}
