//! Linearizability: whether a history of concurrent calls could have happened one call after the
//! other, each at some moment between its invocation and its return. The search is that of Wing and
//! Gong; visited positions are remembered, as Lowe proposed, so that equal positions are searched
//! once.

use std::collections::HashSet;
use std::hash::Hash;

/// Limit of calls in one history; more are not searched.
pub const MAX_CALLS: usize = 64;

/// The sequential behaviour of one object.
pub trait Model {
    type State: Clone + Eq + Hash;
    type Op;
    type Answer: PartialEq;

    fn start(&self) -> Self::State;
    fn step(&self, state: &Self::State, op: &Self::Op) -> (Self::State, Self::Answer);
}

/// One call of a history. Times only give an order; they are not durations.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<O, A> {
    pub op: O,
    pub invoked: u64,
    /// `None` when the caller got no response: the call may have taken effect at any time after its
    /// invocation, or never.
    pub returned: Option<(u64, A)>,
}

/// Whether some order of the calls explains every answer.
pub fn is_linearizable<M: Model>(model: &M, calls: &[Call<M::Op, M::Answer>]) -> bool {
    assert!(calls.len() <= MAX_CALLS, "a history of {}", calls.len());
    let mut search = Search {
        model,
        calls,
        tried: HashSet::new(),
    };
    search.reaches_end(0, &model.start())
}

struct Search<'a, M: Model> {
    model: &'a M,
    calls: &'a [Call<M::Op, M::Answer>],
    tried: HashSet<(u64, M::State)>,
}

impl<M: Model> Search<'_, M> {
    /// `done` has a bit for each call that is already ordered.
    fn reaches_end(&mut self, done: u64, state: &M::State) -> bool {
        let left = |place: usize| done & (1 << place) == 0;
        let open = (0..self.calls.len()).filter(|place| left(*place));
        let returns = open.filter_map(|place| Some(self.calls[place].returned.as_ref()?.0));
        // A call that was invoked after another returned comes after it.
        let Some(first_return) = returns.min() else {
            return true;
        };
        if !self.tried.insert((done, state.clone())) {
            return false;
        }
        for (place, call) in self.calls.iter().enumerate() {
            if !left(place) || call.invoked > first_return {
                continue;
            }
            let (next, answer) = self.model.step(state, &call.op);
            let explained = call.returned.as_ref().is_none_or(|(_, is)| *is == answer);
            if explained && self.reaches_end(done | 1 << place, &next) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register that holds a number.
    struct Register;

    enum Op {
        Write(u32),
        Read,
    }

    impl Model for Register {
        type State = u32;
        type Op = Op;
        type Answer = u32;

        fn start(&self) -> u32 {
            0
        }

        fn step(&self, state: &u32, op: &Op) -> (u32, u32) {
            match op {
                Op::Write(number) => (*number, 0),
                Op::Read => (*state, *state),
            }
        }
    }

    fn call(op: Op, invoked: u64, returned: Option<(u64, u32)>) -> Call<Op, u32> {
        Call {
            op,
            invoked,
            returned,
        }
    }

    #[test]
    fn overlapping_calls_may_be_ordered_either_way() {
        for value in [0, 1] {
            let history = [
                call(Op::Write(1), 0, Some((3, 0))),
                call(Op::Read, 1, Some((2, value))),
            ];
            assert!(is_linearizable(&Register, &history), "{value}");
        }
    }

    #[test]
    fn reads_are_monotonic() {
        let history = |second| {
            [
                call(Op::Write(1), 0, Some((5, 0))),
                call(Op::Read, 1, Some((2, 1))),
                call(Op::Read, 3, Some((4, second))),
            ]
        };
        assert!(is_linearizable(&Register, &history(1)));
        assert!(!is_linearizable(&Register, &history(0)));
    }

    #[test]
    fn unacknowledged_call_may_take_effect_late_or_never() {
        let history = |reads: [u32; 2]| {
            [
                call(Op::Write(1), 0, None),
                call(Op::Read, 1, Some((2, reads[0]))),
                call(Op::Read, 3, Some((4, reads[1]))),
            ]
        };
        for reads in [[0, 0], [0, 1], [1, 1]] {
            assert!(is_linearizable(&Register, &history(reads)), "{reads:?}");
        }
        assert!(!is_linearizable(&Register, &history([1, 0])));
    }
}
