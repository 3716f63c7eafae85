//! Runs the code of a flow from one effect to the next, inside a decision.
//!
//! Everything the code is handed is in its journal before the commit, so that running it again from
//! the journal leads to the same place.

use super::draft::Draft;
use super::program::{ProgramStep, Resume};
use super::turn::Next;
use crate::flow::{FlowEffect, FlowError, fingerprint};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tandem_record::conversation::{
    CandidateOrigin, FlowFailure, FlowOrigin, FlowRecord, FlowRef, FlowRunStart,
    SessionEventBody as Body,
};
use tandem_record::{FlowId, RunId};
use tandem_schema::{MAX_WORK, Meter};

/// What an effect leads to.
pub(super) enum Performed {
    /// The code goes on with this result at once.
    Resume(Resume),
    /// The turn goes on elsewhere; the code waits, or has ended.
    Leave(Next),
}

impl Draft<'_> {
    /// Starts a flow; `None` when the input does not fit it and the turn goes on without it.
    pub(super) fn start_flow(
        &mut self,
        flow_id: &FlowId,
        input: Option<Value>,
        origin: FlowOrigin,
    ) -> Option<Next> {
        let spec = self.cx.agent.flows.get(flow_id.as_str())?;
        let run = self.next_flow_run();
        let flow = FlowRef {
            flow_id: flow_id.clone(),
            flow_run_id: run.clone(),
        };
        if let Err(message) = self.check_flow_input(flow_id, input.as_ref()) {
            let error = FlowFailure {
                code: "invalid_input".to_owned(),
                message,
                details: None,
            };
            self.emit_for(Some(flow), Body::FlowFailed { error });
            return None;
        }
        let version = spec.version.clone().unwrap_or_default();
        self.emit_for(
            Some(flow),
            Body::FlowStarted {
                origin,
                input: input.clone(),
                version: version.clone(),
            },
        );
        let start = FlowRunStart {
            run_id: run.clone(),
            agent_id: self.session.start.agent_id.clone(),
            flow_id: flow_id.clone(),
            session_id: Some(self.session.id().clone()),
            owner: self.session.start.owner.clone(),
            version,
            input,
            origin,
            seed: seed_of(&run),
            context: self.session.flow_context(self.turn()),
        };
        self.record(&run, FlowRecord::Started(Box::new(start.clone())));
        let step = self.cx.programs.borrow_mut().start(&start, self.now);
        Some(self.drive(step))
    }

    /// Why the input of a flow is refused.
    pub(super) fn check_flow_input(
        &self,
        flow_id: &FlowId,
        input: Option<&Value>,
    ) -> Result<(), String> {
        let spec = self.cx.agent.flows.get(flow_id.as_str());
        let Some(schema) = spec.and_then(|spec| spec.input_schema.as_ref()) else {
            return Ok(());
        };
        let errors = schema.errors(input.unwrap_or(&Value::Null), &Meter::with_limit(MAX_WORK));
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.join("; ")),
        }
    }

    fn next_flow_run(&self) -> RunId {
        let (session, ordinal) = (self.session.id(), self.session.flows_started + 1);
        let digest = Sha256::digest(format!("tandem:flow:v1\0{session}\0{ordinal}").as_bytes());
        let hex: String = digest[..10].iter().map(|b| format!("{b:02x}")).collect();
        // The time first, so that ids sort by creation.
        RunId::from(format!("flow-{:012x}-{hex}", self.now.0))
    }

    /// Hands the result of the last effect to the code and goes on.
    pub(super) fn resume_flow(&mut self, with: Resume) -> Next {
        let Some((run, step)) = self.active_step() else {
            return Next::Classic;
        };
        self.record_result(&run, step, &with);
        match self.resume_program(&run, with) {
            Some(step) => self.drive(step),
            None => {
                self.needs_program = Some(run);
                Next::Wait
            }
        }
    }

    /// The active run and the step whose effect is performed.
    pub(super) fn active_step(&self) -> Option<(RunId, u32)> {
        let flow = self.session.flow.as_ref()?;
        Some((flow.run.clone(), flow.steps.saturating_sub(1)))
    }

    fn record_result(&mut self, run: &RunId, step: u32, with: &Resume) {
        let (value, error) = match with {
            Resume::Value(value) => (value.clone(), None),
            Resume::Throw(error) => (None, Some(Self::error_json(error))),
            Resume::Host(_) => return,
        };
        self.record(run, FlowRecord::Result { step, value, error });
    }

    fn resume_program(&mut self, run: &RunId, with: Resume) -> Option<ProgramStep> {
        let turn = self.session.turn.as_ref();
        let message = turn.and_then(|turn| turn.cause.message());
        let inbound = message.map(super::context_data::inbound);
        let mut programs = self.cx.programs.borrow_mut();
        programs.resume(run, with, inbound.as_ref(), self.now)
    }

    fn drive(&mut self, mut step: ProgramStep) -> Next {
        loop {
            let Some(flow) = &self.session.flow else {
                return Next::DONE;
            };
            let run = flow.run.clone();
            let resume = match step {
                ProgramStep::HostCall { name, args } => {
                    let answer = self.answer_host_call(&run, &name, &args);
                    self.note_host_call(&run, name, &args, &answer);
                    Resume::Host(answer)
                }
                ProgramStep::Yielded(effect) => {
                    if let Some(limit) = self.broken_limit(&run) {
                        return self.fail_flow(limit);
                    }
                    match self.perform(&run, effect) {
                        Performed::Resume(with) => {
                            let at = self.active_step().map_or(0, |(_, step)| step);
                            self.record_result(&run, at, &with);
                            with
                        }
                        Performed::Leave(next) => return next,
                    }
                }
                ProgramStep::Returned(value) => {
                    let reason = value.get("reason").and_then(Value::as_str);
                    self.end_flow(reason, false);
                    return Next::DONE;
                }
                ProgramStep::Failed(failure) => return self.fail_flow(failure),
                ProgramStep::Diverged {
                    step,
                    expected,
                    actual,
                } => return self.diverge_flow(step, expected, actual),
            };
            step = match self.resume_program(&run, resume) {
                Some(step) => step,
                None => {
                    self.needs_program = Some(run);
                    return Next::Wait;
                }
            };
        }
    }

    fn broken_limit(&self, run: &RunId) -> Option<FlowFailure> {
        let limits = &self.cx.agent.limits;
        let flow = self.session.flow.as_ref()?;
        let turn = self.turn();
        let message = if turn.flow_effects >= limits.max_effects_per_turn {
            let limit = limits.max_effects_per_turn;
            format!("the flow produced more than {limit} effects in one turn")
        } else if flow.records as usize + self.drafted_records(run)
            > limits.max_journal_records as usize
        {
            let limit = limits.max_journal_records;
            format!(
                "the journal of the flow has more than {limit} records; hand off to a fresh run"
            )
        } else {
            return None;
        };
        Some(FlowFailure {
            code: "flow_limit".to_owned(),
            message,
            details: None,
        })
    }

    /// Records the effect and performs it.
    fn perform(&mut self, run: &RunId, value: Value) -> Performed {
        let step = self.session.flow.as_ref().map_or(0, |flow| flow.steps);
        self.record(
            run,
            FlowRecord::Effect {
                step,
                fingerprint: fingerprint(&value),
                effect: value.clone(),
            },
        );
        let parsed = FlowEffect::parse(&value);
        let duplicate = self.duplicate_client_id(&value);
        self.emit(Body::FlowEffectStarted {
            step,
            effect: value,
        });
        match (parsed, duplicate) {
            (Err(bad), _) => Performed::Resume(Resume::Throw(bad.into())),
            (Ok(_), Some(id)) => {
                let message = format!("the id {id} is used twice in this run");
                Performed::Resume(Resume::Throw(FlowError::effect("bad_effect", message)))
            }
            (Ok(effect), None) => self.perform_effect(run, step, effect),
        }
    }

    fn duplicate_client_id(&self, effect: &Value) -> Option<String> {
        let flow = self.session.flow.as_ref()?;
        let id = effect.get("id")?.as_str()?;
        let has = flow.client_ids.iter().any(|known| known == id);
        has.then(|| id.to_owned())
    }

    /// Ends the active flow run. Its open escalation stays open, but resumes nothing any more.
    pub(super) fn end_flow(&mut self, reason: Option<&str>, cancelled: bool) {
        let Some(flow) = self.session.flow.clone() else {
            return;
        };
        for effect in self.cx.programs.borrow_mut().close(&flow.run) {
            self.emit(Body::FlowEffectIgnored { effect });
        }
        self.leave_flow(&flow.run);
        let reason = reason.map(str::to_owned);
        self.record(
            &flow.run,
            FlowRecord::Ended {
                reason: reason.clone(),
                cancelled,
            },
        );
        self.emit(Body::FlowEnded { reason });
        self.replay_queue();
    }

    /// The code failed: the run ends, the user is told that something went wrong.
    pub(super) fn fail_flow(&mut self, failure: FlowFailure) -> Next {
        let Some(run) = self.session.flow.as_ref().map(|flow| flow.run.clone()) else {
            return Next::DONE;
        };
        self.cx.programs.borrow_mut().close(&run);
        self.leave_flow(&run);
        self.record(
            &run,
            FlowRecord::Failed {
                failure: failure.clone(),
            },
        );
        self.emit(Body::FlowFailed { error: failure });
        self.replay_queue();
        let text = self.cx.agent.texts.fallback_reply.clone();
        self.respond(&text, CandidateOrigin::Fallback, None)
    }

    /// The code no longer fits its journal. Nothing is performed; the run is no longer the session's
    /// active flow and waits for an operator.
    fn diverge_flow(&mut self, step: u32, expected: Value, actual: Value) -> Next {
        let Some(flow) = self.session.flow.clone() else {
            return Next::DONE;
        };
        self.leave_flow(&flow.run);
        self.record(
            &flow.run,
            FlowRecord::Diverged {
                step,
                expected: expected.clone(),
                actual: actual.clone(),
            },
        );
        self.emit(Body::FlowDiverged {
            step,
            expected,
            actual,
            code_hash: flow.version,
        });
        self.replay_queue();
        let text = self.cx.agent.texts.fallback_reply.clone();
        self.respond(&text, CandidateOrigin::Fallback, None)
    }

    fn leave_flow(&mut self, run: &RunId) {
        let open = self.session.escalations.values();
        let of_run = open.filter(|e| e.is_open() && e.flow_run_id.as_ref() == Some(run));
        let ids: Vec<_> = of_run.map(|e| e.id.clone()).collect();
        for escalation_id in ids {
            self.emit(Body::EscalationDetached { escalation_id });
        }
    }

    /// Messages that were kept while a person was awaited get a turn each.
    fn replay_queue(&mut self) {
        for message in self.session.queued.clone() {
            self.emit(Body::TurnQueued {
                cause: tandem_record::conversation::TurnCause::QueueReplay {
                    message: Box::new(message),
                },
            });
        }
    }

    fn note_host_call(
        &mut self,
        run: &RunId,
        name: String,
        args: &[Value],
        answer: &Result<Option<Value>, FlowError>,
    ) {
        let index = self.drafted_records(run) as u32;
        let (value, error) = match answer {
            Ok(value) => (value.clone(), None),
            Err(error) => (None, Some(Self::error_json(error))),
        };
        self.record(
            run,
            FlowRecord::Host {
                index,
                fingerprint: fingerprint(&json!([name, args])),
                name,
                value,
                error,
            },
        );
    }
}

/// The source of a run's randomness.
fn seed_of(run: &RunId) -> u64 {
    let digest = Sha256::digest(format!("tandem:flow-seed:v1\0{run}").as_bytes());
    let bytes: [u8; 8] = digest[..8].try_into().expect("a digest has 32 bytes");
    u64::from_be_bytes(bytes)
}
