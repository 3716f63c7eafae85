//! The model of one question: an approval with votes.

use super::{Answer, Op, Outcome, Votes};
use crate::linearizability::Model;
use tandem_record::Interrupt;

/// An approval that needs a number of votes; one rejection ends it.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) required: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum State {
    Open(Votes),
    Decided(Outcome),
    Closed,
}

impl Gate {
    /// `None` for questions of another kind.
    pub(super) fn from_interrupt(interrupt: &Interrupt) -> Option<Self> {
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
