//! Decisions that would break the log stop before anything is committed, in every build.

use super::harness::RunHarness;
use super::workflow_builder::workflow;
use crate::run::DecisionDraft;
use tandem_record::{Event, RecordedEvent, Seq};

fn log_line() -> Event {
    Event::LogAppended {
        level: "info".to_owned(),
        message: "a line".to_owned(),
        node: None,
        fields: None,
    }
}

#[test]
#[should_panic(expected = "nothing follows a terminal event")]
fn event_after_the_end_stops_the_decision() {
    let run = RunHarness::started(workflow("ended").noops("a"));
    assert!(run.status().is_terminal());
    let cx = run.context();
    let mut draft = DecisionDraft::new(run.run(), &cx);
    draft.emit(log_line(), None);
}

#[test]
#[should_panic(expected = "have no gaps")]
fn event_after_a_gap_stops_the_decision() {
    let run = RunHarness::started(workflow("waiting").delay("a", 1_000));
    let cx = run.context();
    let mut draft = DecisionDraft::new(run.run(), &cx);
    let next = run.run().head().map_or(0, |head| head.0 + 1);
    draft.append_recorded(RecordedEvent {
        seq: Seq(next + 1),
        at: run.now,
        cause: None,
        event: log_line(),
    });
}
