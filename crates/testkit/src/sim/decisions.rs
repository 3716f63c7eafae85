//! Checks decisions as their callers saw them against a model of one question. For all calls
//! (concurrent, repeated, aborted by a crash, or reported as failed although durable) there must be
//! an order that explains every answer.

use super::check::ensure;
use crate::linearizability::{Call, MAX_CALLS, Model, is_linearizable};
use std::collections::BTreeMap;
use tandem_record::{Event, Interrupt, InterruptId, RecordedEvent, Reply, RunId, Vote};
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

    /// Checks every approval of a run against the model.
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

/// An approval that needs a number of votes; one rejection ends it.
#[derive(Debug)]
struct Gate {
    required: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum State {
    Open(Votes),
    Decided(Outcome),
    Closed,
}

impl Gate {
    /// `None` for questions of another kind.
    fn from_interrupt(interrupt: &Interrupt) -> Option<Self> {
        let data = &interrupt.data;
        let plain = interrupt.kind == "approval" && data["artifactType"] == "approval";
        let required = data["requiredApprovals"].as_u64().filter(|_| plain)?;
        let required = usize::try_from(required).ok()?;
        Some(Self { required })
    }
}

impl Model for Gate {
    type State = State;
    type Op = Op;
    type Answer = Answer;

    fn start(&self) -> State {
        State::Open(Votes::new())
    }

    fn step(&self, state: &State, op: &Op) -> (State, Answer) {
        let votes = match (state, op) {
            (State::Open(_), Op::Cancel) => return (State::Closed, Answer::Cancelled),
            (_, Op::Cancel) => return (state.clone(), Answer::Cancelled),
            (State::Open(_), Op::Close) => return (State::Closed, Answer::Closed),
            (State::Open(_), Op::ReadLog) => {
                return (state.clone(), Answer::Other("open".to_owned()));
            }
            (State::Open(votes), Op::Decide { .. }) => votes,
            (State::Decided(outcome), _) => {
                return (state.clone(), Answer::AlreadyDecided(outcome.clone()));
            }
            (State::Closed, _) => return (State::Closed, Answer::Closed),
        };
        let Op::Decide {
            by,
            action,
            allowed,
        } = op
        else {
            unreachable!("everything else was answered");
        };
        let action = match (allowed, action) {
            (false, _) => return (state.clone(), Answer::Denied),
            (true, None) => return (state.clone(), Answer::Invalid),
            (true, Some(action)) => *action,
        };
        let mut votes = votes.clone();
        votes.insert(by.clone(), action.to_owned());
        let accepted = votes.values().filter(|vote| *vote == "accept").count();
        let outcome = match action {
            "reject" => "rejected",
            _ if accepted >= self.required => "accepted",
            _ => return (State::Open(votes.clone()), Answer::Counted(votes)),
        };
        let outcome = Outcome {
            by: by.clone(),
            outcome: outcome.to_owned(),
        };
        let state = State::Decided(outcome.clone());
        (state, Answer::Decided(outcome, votes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decides(by: &str, invoked: u64, returned: Option<(u64, Answer)>) -> Call<Op, Answer> {
        let op = Op::Decide {
            by: by.to_owned(),
            action: Some("accept"),
            allowed: true,
        };
        Call {
            op,
            invoked,
            returned,
        }
    }

    fn accepted(by: &str) -> Outcome {
        Outcome {
            by: by.to_owned(),
            outcome: "accepted".to_owned(),
        }
    }

    fn votes(of: &[&str]) -> Votes {
        of.iter()
            .map(|voter| ((*voter).to_owned(), "accept".to_owned()))
            .collect()
    }

    fn holds(required: usize, calls: &[Call<Op, Answer>]) -> bool {
        is_linearizable(&Gate { required }, calls)
    }

    #[test]
    fn two_winners_of_one_question_are_detected() {
        let won = |by: &str| Answer::Decided(accepted(by), votes(&[by]));
        let lost = Answer::AlreadyDecided(accepted("ana"));
        let ana = decides("ana", 1, Some((4, won("ana"))));
        assert!(holds(1, &[ana.clone(), decides("ben", 2, Some((3, lost)))]));
        assert!(!holds(1, &[ana, decides("ben", 2, Some((3, won("ben"))))]));
    }

    #[test]
    fn lost_vote_is_detected() {
        let counted = |of: &[&str]| Some((3, Answer::Counted(votes(of))));
        let ana = decides("ana", 1, Some((2, Answer::Counted(votes(&["ana"])))));
        let mut ben = decides("ben", 3, counted(&["ana", "ben"]));
        ben.returned.as_mut().unwrap().0 = 4;
        assert!(holds(3, &[ana.clone(), ben.clone()]));
        ben.returned = Some((4, Answer::Counted(votes(&["ben"]))));
        assert!(!holds(3, &[ana.clone(), ben]));
        // The second vote was enough, but the question stayed open.
        let more = decides("ben", 3, Some((4, Answer::Counted(votes(&["ana", "ben"])))));
        assert!(!holds(2, &[ana, more]));
    }

    #[test]
    fn reverted_decision_is_detected() {
        let ana = decides(
            "ana",
            1,
            Some((2, Answer::Decided(accepted("ana"), votes(&["ana"])))),
        );
        let read = |end: Answer| Call {
            op: Op::ReadLog,
            invoked: 5,
            returned: Some((6, end)),
        };
        assert!(holds(
            1,
            &[ana.clone(), read(Answer::AlreadyDecided(accepted("ana")))]
        ));
        assert!(!holds(1, &[ana.clone(), read(Answer::Closed)]));
        assert!(!holds(
            1,
            &[ana, read(Answer::AlreadyDecided(accepted("ben")))]
        ));
        // A caller without a response may have decided, but a person without a call may not.
        let unacknowledged = decides("ana", 1, None);
        assert!(holds(
            1,
            &[
                unacknowledged.clone(),
                read(Answer::AlreadyDecided(accepted("ana")))
            ]
        ));
        assert!(!holds(
            1,
            &[
                unacknowledged,
                read(Answer::AlreadyDecided(accepted("ben")))
            ]
        ));
    }

    #[test]
    fn decision_after_a_cancel_is_detected() {
        let cancel = Call {
            op: Op::Cancel,
            invoked: 1,
            returned: Some((2, Answer::Cancelled)),
        };
        let late = |answer: Answer| decides("ana", 3, Some((4, answer)));
        assert!(holds(1, &[cancel.clone(), late(Answer::Closed)]));
        let won = Answer::Decided(accepted("ana"), votes(&["ana"]));
        assert!(!holds(1, &[cancel, late(won)]));
    }
}
