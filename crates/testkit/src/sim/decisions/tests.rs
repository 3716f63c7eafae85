//! Violations that the model detects.

use super::question::Gate;
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
