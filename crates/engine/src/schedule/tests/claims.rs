//! Claims: one run for each occurrence, and how a run goes over to another process.

use super::harness::{TestSchedule, at, create, cron, for_user};
use crate::schedule::ScheduleRefusal;
use serde_json::{Value, json};
use tandem_record::conversation::{
    ScheduleCommand, ScheduleEventBody as Body, ScheduleStatus, ScheduledOutcome,
};

fn hourly() -> TestSchedule {
    TestSchedule::new(json!({}), &for_user(cron("0 * * * *")))
}

fn takeovers(test: &TestSchedule) -> Vec<u32> {
    let taken = test.events.iter().filter_map(|event| match event {
        Body::ClaimTakenOver { attempt, .. } => Some(*attempt),
        _ => None,
    });
    taken.collect()
}

fn pause() -> ScheduleCommand {
    ScheduleCommand::Pause {
        expected: None,
        actor: None,
    }
}

fn cancel() -> ScheduleCommand {
    ScheduleCommand::Cancel {
        expected: None,
        actor: None,
        reason: "admin".to_owned(),
    }
}

#[test]
fn run_of_one_user_ends_with_their_turn() {
    let mut test = hourly();
    test.clock_at("2031-03-03T09:00:00Z");
    let run = test.run();
    test.start(&run, 0);
    test.finish(&run, 0, ScheduledOutcome::Success, None);
    let expected = json!({"outcome": "success", "reason": null, "partial": false, "attempt": 1,
        "counts": [1, 0, 0, 0]});
    assert_eq!(test.finished(), [expected]);
    assert!(test.schedule.run(&run).is_none());
    assert!(run.as_str().starts_with("srun-"));
}

/// Z-171 (half: an expired claim is taken over with the next attempt; what is recorded is not repeated),
/// Z-170 (half: a claim lasts until it expires, and an occurrence is triggered once),
/// Z-259 (half: whoever takes it over finishes it, whatever its age, under the same run)
#[test]
fn expired_claim_is_taken_over_with_the_next_attempt() {
    let mut test = hourly();
    test.is_alone = false;
    test.clock_at("2031-03-03T09:00:00Z");
    let run = test.run();
    test.start(&run, 0);
    test.take_work();
    test.process = "p2";
    // The claim lasts a minute.
    test.clock_at("2031-03-03T09:00:59Z");
    assert!(takeovers(&test).is_empty());
    test.clock_at("2031-03-03T09:01:00Z");
    assert_eq!(takeovers(&test), [2]);
    assert!(test.take_work().is_empty(), "the turn had begun");
    test.clock_at("2031-03-03T09:59:00Z");
    test.finish(&run, 0, ScheduledOutcome::Success, None);
    assert_eq!(test.finished()[0]["attempt"], 2);
    assert_eq!(test.triggered(), ["09:00"]);
}

#[test]
fn whoever_works_on_a_run_keeps_its_claim() {
    let mut test = hourly();
    test.is_alone = false;
    test.clock_at("2031-03-03T09:00:00Z");
    let run = test.run();
    test.start(&run, 0);
    for minute in 1..5 {
        test.clock_at(&format!("2031-03-03T09:0{minute}:30Z"));
    }
    assert!(takeovers(&test).is_empty());
    test.process = "p2";
    test.finish(&run, 0, ScheduledOutcome::Success, None);
    assert_eq!(test.finished()[0]["attempt"], 1, "the other one is alive");
}

/// Z-175 (half: a failed turn ends the run as failed, without another attempt)
#[test]
fn process_that_is_alone_takes_over_at_once() {
    let mut test = hourly();
    test.clock_at("2031-03-03T09:00:00Z");
    let run = test.run();
    test.start(&run, 0);
    test.process = "p2";
    test.finish(&run, 0, ScheduledOutcome::Failed, Some("exception"));
    assert_eq!(takeovers(&test), [2]);
    assert_eq!(test.finished()[0]["attempt"], 2);
    assert_eq!(test.finished()[0]["reason"], "exception");
}

/// Z-161
#[test]
fn updates_raise_the_version_and_lock_optimistically() {
    let mut test = hourly();
    assert_eq!(test.record().version, 1);
    let definition = test.read(&for_user(cron("30 * * * *")));
    let update = |expected| ScheduleCommand::Update {
        expected,
        definition: Box::new(definition.clone()),
        actor: None,
    };
    let changed = test.command(update(Some(1))).expect("the version fits");
    assert_eq!(
        (changed.version, changed.next_run_at),
        (2, test.record().next_run_at)
    );
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T09:30:00Z"));
    let refused = test.command(update(Some(1)));
    assert_eq!(
        refused,
        Err(ScheduleRefusal::VersionConflict { version: 2 })
    );
    assert_eq!(
        test.command(update(None))
            .expect("no version is asked")
            .version,
        3
    );
    test.command(pause()).expect("it pauses");
    assert_eq!(test.record().version, 4);
}

/// Z-171 (half: a claim of a schedule that was paused or cancelled is stale), Z-170 (half: it claims nothing)
#[test]
fn paused_and_cancelled_schedules_claim_nothing() {
    let mut test = hourly();
    test.command(pause()).expect("it pauses");
    assert_eq!(test.next_run_at(), None);
    test.clock_at("2031-03-03T09:00:00Z");
    let resume = ScheduleCommand::Resume {
        expected: None,
        actor: None,
    };
    test.command(resume.clone()).expect("it goes on");
    test.clock_at("2031-03-03T10:00:00Z");
    assert_eq!(test.triggered(), ["10:00"]);
    test.command(cancel()).expect("it is cancelled");
    test.clock_at("2031-03-03T11:00:00Z");
    assert_eq!(test.triggered(), ["10:00"]);
    assert_eq!(test.command(resume), Err(ScheduleRefusal::Canceled));
    assert_eq!(test.command(pause()), Err(ScheduleRefusal::Canceled));
    assert!(test.command(cancel()).is_ok(), "once more changes nothing");
}

/// Z-171 (half: a claim of a schedule that was changed since it was read is stale)
#[test]
fn changed_schedule_is_not_claimed_as_it_was() {
    let mut test = hourly();
    let read: Vec<_> = test.timers.keys().cloned().collect();
    assert!(!read.is_empty());
    let definition = test.read(&for_user(cron("30 * * * *")));
    let update = ScheduleCommand::Update {
        expected: None,
        definition: Box::new(definition),
        actor: None,
    };
    test.command(update).expect("it changes");
    test.now = at("2031-03-03T09:00:00Z");
    let events = test.events.len();
    for timer in read {
        test.command(ScheduleCommand::FireTimer(timer))
            .expect("never refused");
    }
    assert_eq!(test.events.len(), events, "09:00 is no occurrence any more");
    test.clock_at("2031-03-03T09:30:00Z");
    assert_eq!(test.triggered(), ["09:30"]);
}

#[test]
fn creating_twice_makes_one_schedule() {
    let mut test = hourly();
    let definition = test.read(&for_user(cron("5 * * * *")));
    let reply = test.command(create(definition)).expect("it exists");
    assert_eq!((reply.version, test.events.len()), (1, 1));
}

#[test]
fn commands_to_nothing_are_refused() {
    let mut test = hourly();
    test.schedule = crate::schedule::Schedule::unstarted("sch-2".into());
    test.timers.clear();
    assert_eq!(test.command(pause()), Err(ScheduleRefusal::Unknown));
}

/// Z-157 (half: configured schedules are upserted, and cancelled when they are removed)
#[test]
fn configured_schedules_follow_their_file() {
    let mut test = hourly();
    test.schedule = crate::schedule::Schedule::unstarted("cfg:demo:morning".into());
    test.timers.clear();
    let configure = |test: &TestSchedule, expr: &str, fingerprint: &str| {
        let create = create(test.read(&for_user(cron(expr))));
        let ScheduleCommand::Create {
            agent_id,
            owner,
            definition,
            ..
        } = create
        else {
            unreachable!("it was built so");
        };
        ScheduleCommand::Configure {
            agent_id: Some(agent_id),
            owner,
            definition,
            fingerprint: fingerprint.to_owned(),
        }
    };
    let first = configure(&test, "0 9 * * *", "a");
    let status = |test: &TestSchedule| (test.record().status, test.record().version);
    test.command(first.clone()).expect("it is made");
    test.command(first.clone()).expect("nothing changed");
    assert_eq!(status(&test), (ScheduleStatus::Active, 1));
    let second = configure(&test, "0 10 * * *", "b");
    test.command(second.clone()).expect("it changed");
    assert_eq!(status(&test), (ScheduleStatus::Active, 2));
    test.command(ScheduleCommand::Unconfigure)
        .expect("it is gone");
    test.command(ScheduleCommand::Unconfigure)
        .expect("it is gone");
    assert_eq!(status(&test), (ScheduleStatus::Canceled, 3));
    test.command(second).expect("it is back");
    assert_eq!(status(&test), (ScheduleStatus::Active, 4));
    // What an admin cancelled stays so until its definition changes.
    test.command(cancel()).expect("it is cancelled");
    test.command(configure(&test, "0 10 * * *", "b"))
        .expect("nothing changed");
    assert_eq!(test.record().status, ScheduleStatus::Canceled);
    let plane: Value = json!(test.record().created_by.plane);
    assert_eq!(plane, "config");
}

fn once(run_at: &str, metadata: &Value) -> Value {
    let mut definition = for_user(json!({"type": "once", "runAt": run_at}));
    definition["metadata"] = metadata.clone();
    definition["onMissed"] = json!({"policy": "catch_up"});
    definition
}

fn configure(test: &TestSchedule, definition: &Value) -> ScheduleCommand {
    ScheduleCommand::Configure {
        agent_id: Some("demo".into()),
        owner: test.record().owner.clone(),
        definition: Box::new(test.read(definition)),
        fingerprint: definition.to_string(),
    }
}

/// Z-170 (half: a changed file does not bring back what took place), Z-159 (half: nor a one-off)
#[test]
fn one_off_that_took_place_does_not_come_back_with_a_changed_file() {
    let mut test = TestSchedule::new(json!({}), &once("2031-03-03T09:00:00Z", &json!({"n": 0})));
    test.clock_at("2031-03-03T09:00:00Z");
    let run = test.run();
    test.start(&run, 0);
    test.finish(&run, 0, ScheduledOutcome::Success, None);
    for n in 1..3 {
        let changed = once("2031-03-03T09:00:00Z", &json!({ "n": n }));
        let changed = configure(&test, &changed);
        test.command(changed).expect("never refused");
        test.clock_at(&format!("2031-03-03T09:0{n}:30Z"));
        assert_eq!(test.record().status, ScheduleStatus::Completed);
    }
    // Not either when the file had lost it meanwhile.
    let command = ScheduleCommand::Unconfigure;
    test.command(command).expect("never refused");
    let again = configure(&test, &once("2031-03-03T09:00:00Z", &json!({"n": 3})));
    test.command(again).expect("never refused");
    test.clock_at("2031-03-03T09:10:00Z");
    assert_eq!(test.triggered(), ["09:00"]);
    assert_eq!(test.finished().len(), 1);
    // Another moment is another occurrence.
    let later = configure(&test, &once("2031-03-03T09:20:00Z", &json!({"n": 3})));
    test.command(later).expect("never refused");
    test.clock_at("2031-03-03T09:20:00Z");
    assert_eq!(test.triggered(), ["09:00", "09:20"]);
}

/// Z-170 (half: a process whose clock is behind claims nothing again)
#[test]
fn occurrence_is_not_claimed_again_by_a_clock_that_is_behind() {
    let mut test = TestSchedule::new(json!({}), &for_user(cron("* * * * *")));
    test.clock_at("2031-03-03T08:31:00Z");
    test.clock_at("2031-03-03T08:32:00Z");
    assert_eq!(test.triggered(), ["08:31", "08:32"]);
    test.now = at("2031-03-03T08:30:40Z");
    let mut changed = for_user(cron("* * * * *"));
    changed["metadata"] = json!({"changed": true});
    let removed_and_back = [ScheduleCommand::Unconfigure, configure(&test, &changed)];
    let paused = [
        pause(),
        ScheduleCommand::Resume {
            expected: None,
            actor: None,
        },
    ];
    for command in removed_and_back.into_iter().chain(paused) {
        test.command(command).expect("never refused");
    }
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T08:33:00Z"));
    test.clock_at("2031-03-03T08:33:00Z");
    assert_eq!(test.triggered(), ["08:31", "08:32", "08:33"]);
}
