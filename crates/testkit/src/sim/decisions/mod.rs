//! Checks decisions as their callers saw them against a model of one question. For all calls
//! (concurrent, repeated, aborted by a crash, or reported as failed although durable) there must be
//! an order that explains every answer.

mod question;
#[cfg(test)]
mod tests;

use super::check::ensure;
use crate::linearizability::{Call, MAX_CALLS, is_linearizable};
use question::Gate;
use std::collections::BTreeMap;
use tandem_record::{Event, InterruptId, RecordedEvent, Reply, RunId, Vote};
use tandem_runtime::SubmitError;

/// Limit of recorded calls for one question; simulated people try no more often.
pub(super) const MAX_DECISIONS: usize = 40;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// A person answers, validly or not.
    Decide {
        by: String,
        /// `None` for an invalid answer.
        action: Option<&'static str>,
        allowed: bool,
    },
    /// A caller cancels the run.
    Cancel,
    /// A timeout, a parent or the run's own end closes the question.
    Close,
    /// The log is read after everything ended.
    ReadLog,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The vote counts, and more are needed.
    Counted(Votes),
    Decided(Outcome, Votes),
    /// Another person had decided before.
    AlreadyDecided(Outcome),
    /// It was closed, and not by a decision.
    Closed,
    Denied,
    Invalid,
    Cancelled,
    /// An answer the model does not cover.
    Other(String),
}

/// Actions by voter.
type Votes = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Outcome {
    by: String,
    outcome: String,
}

/// All calls to questions of all runs, in the order they happened.
#[derive(Default)]
pub(super) struct History {
    now: u64,
    questions: BTreeMap<InterruptId, Vec<Call<Op, Answer>>>,
    cancels: BTreeMap<RunId, Vec<Call<Op, Answer>>>,
}

/// What several processes on one store do that the model does not describe. Such calls change nothing.
#[derive(Clone, Copy)]
pub(super) struct Deviations {
    /// Each process compares a deadline with its own clock: one may refuse an answer that another still
    /// accepts.
    pub(super) clocks_differ: bool,
    /// The timer of a deadline may fire late, because its process failed. Until then a person without
    /// permission is denied, although others already get that it is closed.
    pub(super) late_timers: bool,
}

impl Deviations {
    fn explain(self, call: &Call<Op, Answer>) -> bool {
        match &call.returned {
            Some((_, Answer::Closed)) => self.clocks_differ,
            Some((_, Answer::Denied)) => self.late_timers,
            _ => false,
        }
    }
}

impl History {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Number of attempts to decide a question.
    pub(super) fn tries(&self, question: &InterruptId) -> usize {
        self.questions.get(question).map_or(0, Vec::len)
    }

    /// A call begins. Returns its index among the calls of the question.
    pub(super) fn decides(&mut self, question: &InterruptId, op: Op) -> usize {
        let invoked = self.tick();
        let calls = self.questions.entry(question.clone()).or_default();
        calls.push(begun(op, invoked));
        calls.len() - 1
    }

    pub(super) fn decided(
        &mut self,
        question: &InterruptId,
        call: usize,
        result: &Result<Reply, SubmitError>,
    ) {
        let now = self.tick();
        let calls = self.questions.get_mut(question);
        let call = calls.and_then(|calls| calls.get_mut(call));
        if let (Some(call), Some(answer)) = (call, answer(result)) {
            call.returned = Some((now, answer));
        }
    }

    pub(super) fn cancels(&mut self, run: &RunId) -> usize {
        let invoked = self.tick();
        let calls = self.cancels.entry(run.clone()).or_default();
        calls.push(begun(Op::Cancel, invoked));
        calls.len() - 1
    }

    pub(super) fn cancelled(&mut self, run: &RunId, call: usize, done: bool) {
        let now = self.tick();
        let call = self.cancels.get_mut(run).and_then(|c| c.get_mut(call));
        if let Some(call) = call.filter(|_| done) {
            call.returned = Some((now, Answer::Cancelled));
        }
    }

    /// Checks every approval that a run asked for itself against the model.
    pub(super) fn check_linearizable(
        &self,
        run: &RunId,
        log: &[RecordedEvent],
        deviations: Deviations,
    ) -> Result<(), String> {
        for recorded in log {
            let Event::InterruptRequested { interrupt, .. } = &recorded.event else {
                continue;
            };
            let Some(calls) = self.questions.get(&interrupt.id) else {
                continue;
            };
            let Some(gate) = Gate::from_interrupt(interrupt) else {
                continue;
            };
            let cancels = self.cancels.get(run).map_or(&[][..], Vec::as_slice);
            let covered = calls.iter().filter(|call| !deviations.explain(call));
            let calls: Vec<_> = covered.cloned().collect();
            let calls = complete(&calls, cancels, &interrupt.id, log);
            ensure(calls.len() <= MAX_CALLS, || {
                format!("too many calls for {}", interrupt.id)
            })?;
            ensure(is_linearizable(&gate, &calls), || {
                let id = &interrupt.id;
                format!("no order of decisions explains {id} of {run} ({gate:?}): {calls:#?}")
            })?;
        }
        Ok(())
    }
}

fn begun(op: Op, invoked: u64) -> Call<Op, Answer> {
    Call {
        op,
        invoked,
        returned: None,
    }
}

/// All calls that may have changed a question: those of people, another close if the log has no
/// decision, and the read of the log as the last call.
fn complete(
    decisions: &[Call<Op, Answer>],
    cancels: &[Call<Op, Answer>],
    question: &InterruptId,
    log: &[RecordedEvent],
) -> Vec<Call<Op, Answer>> {
    let end = final_answer(question, log);
    let mut calls = decisions.to_vec();
    if end == Answer::Closed {
        calls.push(begun(Op::Close, 0));
    }
    let room = MAX_CALLS.saturating_sub(calls.len() + 1);
    calls.extend(cancels.iter().take(room).cloned());
    calls.push(Call {
        op: Op::ReadLog,
        invoked: u64::MAX - 1,
        returned: Some((u64::MAX, end)),
    });
    calls
}

fn final_answer(question: &InterruptId, log: &[RecordedEvent]) -> Answer {
    let decided = log.iter().find_map(|recorded| match &recorded.event {
        Event::InterruptResolved { resolution, .. } if resolution.interrupt == *question => {
            let by = resolution.by.as_ref()?.to_string();
            let outcome = resolution.outcome.clone().unwrap_or_default();
            Some(Answer::AlreadyDecided(Outcome { by, outcome }))
        }
        _ => None,
    });
    decided.unwrap_or(Answer::Closed)
}

/// What a caller learned; `None` when the result of its call is unknown.
fn answer(result: &Result<Reply, SubmitError>) -> Option<Answer> {
    use tandem_engine::run::Refusal;
    Some(match result {
        Ok(Reply::Resolved { outcome, votes, .. }) => {
            let counted: Votes = votes.iter().map(by_voter).collect();
            match (outcome, votes.last()) {
                (Some(outcome), Some(last)) => Answer::Decided(
                    Outcome {
                        by: last.voter.clone(),
                        outcome: outcome.clone(),
                    },
                    counted,
                ),
                _ => Answer::Counted(counted),
            }
        }
        Err(SubmitError::Fault(_)) => return None,
        Err(SubmitError::Denied { .. }) => Answer::Denied,
        Err(SubmitError::Refused(Refusal::Invalid(_))) => Answer::Invalid,
        Err(SubmitError::Refused(Refusal::InterruptGone)) => Answer::Closed,
        Err(SubmitError::Refused(Refusal::AlreadyResolved(closed))) => match &closed.by {
            Some(by) => Answer::AlreadyDecided(Outcome {
                by: by.to_string(),
                outcome: closed.outcome.clone(),
            }),
            None => Answer::Closed,
        },
        other => Answer::Other(format!("{other:?}")),
    })
}

fn by_voter(vote: &Vote) -> (String, String) {
    (vote.voter.clone(), vote.action.clone())
}
