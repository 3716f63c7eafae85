//! Runs the code of a flow run again, against its journal (§10.2).
//!
//! Every effect and every context call of the code is compared with the record at the same place. At the end
//! of the journal the code is parked where the live run is.

use serde::Deserialize;
use serde_json::{Value, json};
use tandem_engine::flow::{FlowError, fingerprint};
use tandem_engine::session::{ProgramStep, Resume, SEGMENT_MEMBERS};
use tandem_record::conversation::{FlowFailure, FlowRecord, FlowRunStart};
use tandem_record::{Object, Recorded, Timestamp};
use tandem_runtime::conversation::{FlowProgram, RebuildError};

/// What the journal begins with.
pub(crate) fn start_of(journal: &[Recorded<FlowRecord>]) -> Result<&FlowRunStart, RebuildError> {
    match journal.first().map(|record| &record.event) {
        Some(FlowRecord::Started(start)) => Ok(start),
        _ => Err(unusable("does not begin with the start of a run")),
    }
}

/// `begin` runs the code up to its first step.
pub(crate) fn rebuild<P: FlowProgram>(
    journal: &[Recorded<FlowRecord>],
    begin: impl FnOnce(&FlowRunStart, Timestamp) -> Result<(P, ProgramStep), FlowFailure>,
) -> Result<P, RebuildError> {
    let start = start_of(journal)?;
    let (program, step) = begin(start, journal[0].at).map_err(RebuildError::Failed)?;
    let mut replay = Replay {
        program,
        next: Some(step),
        context: first_segment(start),
        step: 0,
    };
    for record in &journal[1..] {
        replay.follow(&record.event, record.at)?;
    }
    if let Some(extra) = &replay.next {
        return Err(replay.diverged(Value::Null, extra));
    }
    Ok(replay.program)
}

/// What the turn that started the run set.
fn first_segment(start: &FlowRunStart) -> Object {
    let members = SEGMENT_MEMBERS.iter();
    let members = members.filter_map(|name| start.context.get_key_value(*name));
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

struct Replay<P> {
    program: P,
    /// What the code did, while no record says so; `None` while it waits at a recorded effect.
    next: Option<ProgramStep>,
    /// The members of `ctx` that the turn set.
    context: Object,
    /// Of the next effect.
    step: u32,
}

impl<P: FlowProgram> Replay<P> {
    fn follow(&mut self, record: &FlowRecord, now: Timestamp) -> Result<(), RebuildError> {
        match record {
            FlowRecord::Started(_) => Err(unusable("holds a second start")),
            FlowRecord::Segment { context, .. } => {
                self.context.clone_from(context);
                Ok(())
            }
            FlowRecord::Effect {
                step,
                fingerprint: expected,
                effect,
            } => {
                self.step = *step;
                match self.next.take() {
                    Some(ProgramStep::Yielded(actual)) if fingerprint(&actual) == *expected => {
                        self.step += 1;
                        Ok(())
                    }
                    Some(other) => Err(self.diverged(effect.clone(), &other)),
                    None => Err(unusable("holds two effects without a result between them")),
                }
            }
            FlowRecord::Result { value, error, .. } => {
                if self.next.is_some() {
                    return Err(unusable("holds a result without an effect"));
                }
                let with = match error {
                    Some(error) => Resume::Throw(thrown(error)?),
                    None => Resume::Value(value.clone()),
                };
                self.resume(with, now);
                Ok(())
            }
            FlowRecord::Host {
                name,
                fingerprint: expected,
                value,
                error,
                ..
            } => {
                let is_same = match &self.next {
                    Some(ProgramStep::HostCall { name, args }) => {
                        fingerprint(&json!([name, args])) == *expected
                    }
                    _ => false,
                };
                match self.next.take() {
                    Some(other) if !is_same => {
                        return Err(self.diverged(json!({ "call": name }), &other));
                    }
                    Some(_) => {}
                    None => return Err(unusable("holds a call of the context at an effect")),
                }
                let answer = match error {
                    Some(error) => Err(thrown(error)?),
                    None => Ok(value.clone()),
                };
                self.resume(Resume::Host(answer), now);
                Ok(())
            }
            FlowRecord::Ended { .. } | FlowRecord::Failed { .. } => {
                Err(unusable("is that of a run that has ended"))
            }
            // The code sees none of it. A diverged run may be tried again.
            FlowRecord::Paused { .. }
            | FlowRecord::Resumed { .. }
            // What a filter decided is in the result that follows: it is not asked again.
            | FlowRecord::Hook { .. }
            | FlowRecord::Diverged { .. } => Ok(()),
        }
    }

    fn resume(&mut self, with: Resume, now: Timestamp) {
        let step = self.program.resume(with, &self.context, now);
        self.next = Some(step);
    }

    fn diverged(&self, expected: Value, actual: &ProgramStep) -> RebuildError {
        let actual = match actual {
            ProgramStep::Yielded(effect) => effect.clone(),
            ProgramStep::HostCall { name, args } => json!({ "call": name, "args": args }),
            ProgramStep::Returned(value) => json!({ "returned": value }),
            ProgramStep::Failed(failure) => json!({ "failed": failure }),
            ProgramStep::Diverged { actual, .. } => actual.clone(),
        };
        RebuildError::Diverged {
            step: self.step,
            expected,
            actual,
        }
    }
}

fn thrown(error: &Value) -> Result<FlowError, RebuildError> {
    FlowError::deserialize(error).map_err(|_| unusable("holds an error that cannot be thrown"))
}

fn unusable(what: &str) -> RebuildError {
    RebuildError::Failed(FlowFailure {
        code: "exception".to_owned(),
        message: format!("the journal {what}"),
        details: None,
    })
}
