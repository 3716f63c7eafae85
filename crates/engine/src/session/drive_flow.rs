//! Runs the code of a flow from one effect to the next, inside a decision.
//!
//! Everything the code is handed is in its journal before the commit, so that running it again from
//! the journal leads to the same place.

use super::draft::{Divergence, Draft};
use super::flow_state::client_id;
use super::program::{ProgramStep, Resume};
use super::turn::Next;
use crate::flow::{FlowEffect, FlowError, fingerprint};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tandem_record::conversation::{
    FlowFailure, FlowOrigin, FlowRecord, FlowRef, FlowRunStart, FlowStartRequest,
    SessionEventBody as Body,
};
use tandem_record::{FlowId, Object, RunId};
use tandem_schema::{MAX_WORK, Meter};

const INVALID_INPUT: &str = "invalid_input";

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
        self.start_flow_as(FlowStartRequest {
            flow: flow_id.clone(),
            input,
            origin,
            parent: None,
            attempt: 1,
            preempts: false,
        })
    }

    pub(super) fn start_flow_as(&mut self, request: FlowStartRequest) -> Option<Next> {
        let FlowStartRequest {
            flow: flow_id,
            input,
            origin,
            parent,
            attempt,
            ..
        } = request;
        let spec = self.cx.agent.flows.get(flow_id.as_str())?;
        let version = spec.version.clone().unwrap_or_default();
        // The workflow named the run; a second attempt is another run.
        let named = parent.as_ref().filter(|_| attempt == 1);
        let named = named.and_then(|parent| parent.flow_run_id.clone());
        let run = named.unwrap_or_else(|| self.next_flow_run());
        let start = FlowRunStart {
            run_id: run.clone(),
            agent_id: self.session.start.agent_id.clone(),
            flow_id: flow_id.clone(),
            session_id: Some(self.session.id().clone()),
            owner: self.session.start.owner.clone(),
            version: version.clone(),
            input: input.clone(),
            origin,
            parent: parent.clone(),
            forked_from: None,
            seed: seed_of(&run),
            context: self.session.flow_context(self.turn(), attempt),
        };
        let flow = FlowRef {
            flow_id: flow_id.clone(),
            flow_run_id: run.clone(),
        };
        if let Err(message) = self.check_flow_input(&flow_id, input.as_ref()) {
            let error = FlowFailure {
                code: INVALID_INPUT.to_owned(),
                message,
                details: None,
            };
            self.emit_for(Some(flow), Body::FlowFailed { error });
            return None;
        }
        let step = self.cx.programs.borrow_mut().start(&start, self.now);
        if let ProgramStep::Failed(error) = &step
            && error.code == INVALID_INPUT
        {
            // A schema that is code refused it.
            let error = error.clone();
            self.emit_for(Some(flow), Body::FlowFailed { error });
            return None;
        }
        self.emit_for(
            Some(flow),
            Body::FlowStarted {
                origin,
                input,
                version,
                parent,
                attempt,
            },
        );
        self.host_calls = 0;
        self.record(&run, FlowRecord::Started(Box::new(start)));
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
        // What the code does now is its own.
        self.actor = None;
        self.record_result(&run, step, &with);
        if let Some(next) = self.leave_diverged() {
            return next;
        }
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
        let context = self.handed_context(run);
        let mut programs = self.cx.programs.borrow_mut();
        programs.resume(run, with, &context, self.now)
    }

    /// What the turn sets in the code's `ctx`, as the journal has it. While a turn waits for work, messages
    /// arrive and the profile changes: the code keeps what it was handed when the turn came to it.
    fn handed_context(&self, run: &RunId) -> Object {
        if let Some(recorded) = self.drafted_segment(run) {
            return recorded.clone();
        }
        let turn = self.session.turn.as_ref();
        let mut context = turn.map_or_else(Object::new, |turn| self.session.segment_context(turn));
        for changing in ["user", "session"] {
            context.remove(changing);
        }
        context
    }

    fn drive(&mut self, mut step: ProgramStep) -> Next {
        loop {
            let Some(flow) = &self.session.flow else {
                return Next::DONE;
            };
            let run = flow.run.clone();
            let may_go_on = matches!(step, ProgramStep::HostCall { .. } | ProgramStep::Yielded(_));
            if let Some(limit) = self.broken_limit().filter(|_| may_go_on) {
                return self.fail_flow(limit);
            }
            let resume = match step {
                ProgramStep::HostCall { name, args } => {
                    self.host_calls += 1;
                    let answer = self.answer_host_call(&run, &name, &args);
                    self.note_host_call(&run, name, &args, &answer);
                    Resume::Host(answer)
                }
                ProgramStep::Yielded(effect) => match self.perform(&run, effect) {
                    Performed::Resume(with) => {
                        let at = self.active_step().map_or(0, |(_, step)| step);
                        self.record_result(&run, at, &with);
                        with
                    }
                    Performed::Leave(next) => return next,
                },
                ProgramStep::Returned(value) => {
                    let reason = value.get("reason").and_then(Value::as_str);
                    let reason = reason.map(str::to_owned);
                    self.finish_flow(reason.as_deref(), false, Some(value));
                    return Next::DONE;
                }
                ProgramStep::Failed(failure) => return self.fail_flow(failure),
                ProgramStep::Diverged {
                    step,
                    expected,
                    actual,
                } => {
                    self.found_divergence = Some(Divergence {
                        run,
                        step,
                        expected,
                        actual,
                    });
                    return Next::Wait;
                }
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

    fn broken_limit(&self) -> Option<FlowFailure> {
        let limits = &self.cx.agent.limits;
        let flow = self.session.flow.as_ref()?;
        let turn = self.turn();
        let message = if turn.flow_effects >= limits.max_effects_per_turn {
            let limit = limits.max_effects_per_turn;
            format!("the flow produced more than {limit} effects in one turn")
        } else if flow.records + self.host_calls >= limits.max_journal_records {
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
        let host_calls = std::mem::take(&mut self.host_calls);
        self.emit(Body::FlowEffectStarted {
            step,
            effect: value,
            host_calls,
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
        let id = client_id(effect)?;
        let has = flow.client_ids.iter().any(|known| known == id);
        has.then(|| id.to_owned())
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
