//! Schedules that start runs of workflows: what each occurrence requests, what ends it, and what a new version of the
//! document changes.

use super::harness::{TestSchedule, at};
use crate::definition::tests::sound_with;
use crate::definition::{Definition, Permissions};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ScheduleCommand, ScheduleEventBody as Body, ScheduleStatus, ScheduleWork, ScheduledOutcome,
    ScheduledRunStart, WorkflowTarget,
};
use tandem_record::{Owner, Principal, RunId, TenantId};

/// A trigger with this configuration, registered by somebody.
fn configure(test: &TestSchedule, config: Value, by: &str) -> ScheduleCommand {
    let trigger = json!({"id": "daily", "type": "schedule", "config": config});
    let document = sound_with("/triggers/-", trigger);
    let definition = Definition::admit(&document, Permissions::default()).expect("it is sound");
    let trigger = definition.scheduled_triggers().remove(0);
    let principal = Some(Principal::from(by));
    let target = WorkflowTarget {
        workflow_id: definition.id().clone(),
        trigger_id: trigger.id.clone(),
        is_shared: false,
        registered_by: principal.clone(),
    };
    ScheduleCommand::Configure {
        agent_id: None,
        owner: Owner {
            tenant: TenantId::from("acme"),
            workspace: None,
            principal,
        },
        fingerprint: trigger.hash.clone(),
        definition: Box::new(trigger.definition(target, test.now)),
    }
}

fn made(config: Value) -> TestSchedule {
    let mut test = TestSchedule::unmade(json!({}));
    let command = configure(&test, config, "ana");
    test.command(command).expect("it is made");
    test
}

fn hourly() -> TestSchedule {
    made(json!({"cron": "0 * * * *"}))
}

fn note(test: &mut TestSchedule, outcome: ScheduledOutcome, run: Option<&str>) {
    let start = ScheduledRunStart {
        run_id: test.run(),
        outcome,
        reason: None,
        workflow_run_id: run.map(RunId::from),
    };
    let command = ScheduleCommand::NoteRun(Box::new(start));
    test.command(command.clone()).expect("never refused");
    let events = test.events.len();
    test.command(command).expect("never refused");
    assert_eq!(test.events.len(), events, "a repetition changes nothing");
}

#[test]
fn each_occurrence_requests_one_run_and_is_over_when_it_began() {
    let mut test = hourly();
    assert_eq!(
        json!(test.record().created_by),
        json!({"plane": "workflow", "actorId": "ana"})
    );
    test.clock_at("2031-03-03T09:00:05Z");
    assert_eq!(test.triggered(), ["09:00"]);
    let run_id = test.run();
    assert_eq!(test.take_work(), [ScheduleWork::StartRun { run_id }]);
    note(&mut test, ScheduledOutcome::Success, Some("run-1"));
    let started = test.events.iter().find_map(|event| match event {
        Body::RunFinished {
            workflow_run_id, ..
        } => workflow_run_id.clone(),
        _ => None,
    });
    assert_eq!(started, Some(RunId::from("run-1")));
    assert_eq!(test.finished()[0]["counts"], json!([1, 0, 0, 0]));
    assert_eq!(test.timers.len(), 1, "only the next occurrence is awaited");
    test.clock_at("2031-03-03T10:00:05Z");
    assert_eq!(test.triggered(), ["09:00", "10:00"]);
}

#[test]
fn occurrence_of_a_process_that_is_gone_is_taken_over() {
    let mut test = hourly();
    test.clock_at("2031-03-03T09:00:05Z");
    test.process = "p2";
    note(&mut test, ScheduledOutcome::Success, Some("run-1"));
    assert_eq!(test.finished()[0]["attempt"], 2);
}

#[test]
fn moment_takes_place_once() {
    let trigger = json!({"at": "2031-03-03T10:00:00", "timezone": "Europe/Berlin"});
    let mut test = made(trigger.clone());
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T09:00:00Z"));
    test.clock_at("2031-03-03T09:00:05Z");
    note(&mut test, ScheduledOutcome::Success, Some("run-1"));
    assert_eq!(test.record().status, ScheduleStatus::Completed);
    // Another version of the document that still has it.
    let again = configure(&test, trigger, "bob");
    test.command(again).expect("it is handed over");
    assert_eq!(test.record().status, ScheduleStatus::Completed);
    assert_eq!(test.next_run_at(), None);
}

#[test]
fn delay_begins_with_the_registration_and_not_again_with_the_next_version() {
    let delay = json!({"delayMs": 60_000});
    let mut test = made(delay.clone());
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T08:31:05Z"));
    test.now = at("2031-03-03T08:31:00Z");
    let again = configure(&test, delay, "bob");
    test.command(again).expect("it is handed over");
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T08:31:05Z"));
    let by = |test: &TestSchedule| {
        let target = test.record().definition.target.workflow();
        target.and_then(|target| target.registered_by.clone())
    };
    assert_eq!(
        by(&test),
        Some(Principal::from("bob")),
        "runs are those of who registered last"
    );
    test.clock_at("2031-03-03T08:31:10Z");
    note(&mut test, ScheduledOutcome::Success, Some("run-1"));
    assert_eq!(test.record().status, ScheduleStatus::Completed);
    test.command(ScheduleCommand::Unconfigure)
        .expect("it is gone");
    let back = configure(&test, json!({"delayMs": 60_000}), "bob");
    test.command(back).expect("the document came back");
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T08:32:10Z"));
    let longer = configure(&test, json!({"delayMs": 120_000}), "bob");
    test.command(longer).expect("it changed");
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T08:33:10Z"));
}

#[test]
fn trigger_that_is_gone_ends_and_may_come_back() {
    let mut test = hourly();
    let hourly = configure(&test, json!({"cron": "0 * * * *"}), "ana");
    test.command(ScheduleCommand::Unconfigure)
        .expect("it is gone");
    assert_eq!(test.record().status, ScheduleStatus::Canceled);
    test.clock_at("2031-03-03T09:00:05Z");
    assert!(test.triggered().is_empty());
    test.command(hourly).expect("it is back");
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T10:00:00Z"));
}

#[test]
fn missed_occurrences_are_skipped_or_made_up_for_once() {
    for (missed_tick, taken, skipped) in [("skip", 0, 4), ("fire-once", 1, 3)] {
        let mut test = made(json!({"cron": "0 * * * *", "missedTick": missed_tick}));
        test.clock_at("2031-03-03T12:30:00Z");
        assert_eq!(test.triggered().len(), taken, "{missed_tick}");
        let missed = test.skipped().into_iter().map(|(reason, _, count)| {
            assert_eq!(reason, "missed");
            count
        });
        assert_eq!(missed.sum::<u32>(), skipped, "{missed_tick}");
        assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T13:00:00Z"));
    }
}
