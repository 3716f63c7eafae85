//! Occurrences that were looked at in time, and those that were not.

use super::harness::{TestSchedule, cron, for_user, shown};
use serde_json::{Value, json};
use tandem_record::conversation::{ScheduleEventBody as Body, ScheduleStatus};

fn hourly(policy: Value) -> TestSchedule {
    let mut definition = for_user(cron("0 * * * *"));
    if !policy.is_null() {
        definition["onMissed"] = policy;
    }
    TestSchedule::new(json!({}), &definition)
}

#[test]
fn each_occurrence_is_claimed_once_at_its_minute() {
    let mut test = hourly(Value::Null);
    assert_eq!(test.next_run_at().as_deref(), Some("2031-03-03T09:00:00Z"));
    for minute in ["08:59:59", "09:00:00", "09:00:30", "09:59:00", "10:00:59"] {
        test.clock_at(&format!("2031-03-03T{minute}Z"));
    }
    assert_eq!(test.triggered(), ["09:00", "10:00"]);
    assert!(test.skipped().is_empty());
    assert_eq!(test.take_turns(), [0, 0]);
}

/// Z-169 (half: missed occurrences are skipped by default and reported)
#[test]
fn missed_occurrences_are_skipped_by_default() {
    let mut test = hourly(Value::Null);
    test.clock_at("2031-03-03T11:30:00Z");
    assert!(test.triggered().is_empty());
    let missed = |time: &str| ("missed".to_owned(), time.to_owned(), 1);
    assert_eq!(
        test.skipped(),
        [missed("09:00"), missed("10:00"), missed("11:00")]
    );
    test.clock_at("2031-03-03T12:00:05Z");
    assert_eq!(test.triggered(), ["12:00"]);
}

/// Z-169 (half: catch-up takes the newest within its bounds, the oldest first)
#[test]
fn catch_up_takes_the_newest_within_its_bounds() {
    let cases = [
        (json!({"policy": "catch_up"}), vec!["11:00"], 2),
        (
            json!({"policy": "catch_up", "maxRuns": 2}),
            vec!["10:00", "11:00"],
            1,
        ),
        (
            json!({"policy": "catch_up", "maxRuns": 5, "maxAgeSeconds": 3600}),
            vec!["11:00"],
            2,
        ),
    ];
    for (policy, run, dropped) in cases {
        let mut test = hourly(policy.clone());
        test.clock_at("2031-03-03T11:30:00Z");
        assert_eq!(test.triggered(), run, "{policy}");
        assert_eq!(test.skipped().len(), dropped, "{policy}");
    }
}

/// Z-169 (half: an occurrence is missed when it is older than a minute, or twice the poll interval)
#[test]
fn occurrence_is_missed_after_a_minute_or_twice_the_poll_interval() {
    let mut test = hourly(Value::Null);
    test.clock_at("2031-03-03T09:01:00Z");
    assert_eq!(test.triggered(), ["09:00"], "a minute late is in time");
    test.clock_at("2031-03-03T10:01:01Z");
    assert_eq!(
        test.skipped(),
        [("missed".to_owned(), "10:00".to_owned(), 1)]
    );
    let config = json!({"scheduler": {"pollIntervalMs": 120_000}});
    let mut slow = TestSchedule::new(config, &for_user(cron("0 * * * *")));
    slow.clock_at("2031-03-03T09:04:00Z");
    assert_eq!(slow.triggered(), ["09:00"]);
}

/// Z-169 (half: reports of dropped occurrences are aggregated beyond a hundred)
#[test]
fn reports_are_aggregated_beyond_a_hundred() {
    let mut test = TestSchedule::new(json!({}), &for_user(cron("* * * * *")));
    test.clock_at("2031-03-03T12:30:30Z");
    let skipped = test.skipped();
    assert_eq!(skipped.len(), 101);
    // From 08:31 to 12:29 there are 239; the last one is in time.
    assert_eq!(skipped[100].2, 139);
    let last = test.events.iter().rev().find_map(|event| match event {
        Body::Skipped { until, .. } => *until,
        _ => None,
    });
    let last = shown(last.expect("the last one has an end"));
    assert_eq!(last, "2031-03-03T12:29:00Z");
    assert_eq!(test.triggered(), ["12:30"]);
}

#[test]
fn years_without_a_look_cost_a_bounded_decision() {
    let mut definition = for_user(cron("* * * * *"));
    definition["onMissed"] = json!({"policy": "catch_up", "maxRuns": 3});
    let mut test = TestSchedule::new(json!({}), &definition);
    test.clock_at("2034-03-03T12:30:30Z");
    assert_eq!(test.triggered(), ["12:27", "12:28", "12:29", "12:30"]);
    assert_eq!(test.skipped().len(), 101);
}

/// Z-159: it is completed when it is looked at, whatever becomes of its run, and also when it was missed.
#[test]
fn one_off_is_completed_by_its_only_occurrence() {
    let once = json!({"type": "once", "runAt": "2031-03-03T09:00:00Z"});
    let mut ran = TestSchedule::new(json!({}), &for_user(once.clone()));
    ran.clock_at("2031-03-03T09:00:01Z");
    assert_eq!(
        (ran.triggered(), ran.record().status),
        (vec!["09:00".to_owned()], ScheduleStatus::Completed)
    );
    ran.clock_at("2031-03-04T09:00:01Z");
    assert_eq!(ran.triggered().len(), 1);
    let mut missed = TestSchedule::new(json!({}), &for_user(once));
    missed.clock_at("2031-03-03T10:00:00Z");
    assert!(missed.triggered().is_empty());
    assert_eq!(missed.record().status, ScheduleStatus::Completed);
}

#[test]
fn disabled_scheduler_skips_occurrences() {
    let config = json!({"scheduler": {"enabled": false}});
    let mut test = TestSchedule::new(config, &for_user(cron("0 * * * *")));
    test.clock_at("2031-03-03T09:00:01Z");
    assert_eq!(test.skipped()[0].0, "scheduler_disabled");
    assert!(test.take_work().is_empty());
}

/// Z-169 (half: what is on time is not counted against catch-up)
#[test]
fn what_is_on_time_takes_place_beside_all_that_is_caught_up() {
    let mut definition = for_user(cron("* * * * *"));
    definition["onMissed"] = json!({"policy": "catch_up", "maxRuns": 100});
    let mut test = TestSchedule::new(json!({}), &definition);
    test.clock_at("2031-03-03T12:30:05Z");
    let triggered = test.triggered();
    assert_eq!(triggered.len(), 101);
    assert_eq!(triggered.last().map(String::as_str), Some("12:30"));
    test.clock_at("2031-03-03T12:31:05Z");
    assert_eq!(test.triggered().last().map(String::as_str), Some("12:31"));
    assert!(
        test.skipped()
            .iter()
            .all(|(reason, _, _)| reason == "missed")
    );
}
