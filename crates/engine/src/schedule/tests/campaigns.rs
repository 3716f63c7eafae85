//! Campaigns: the list that is made when they are triggered, how many turns run at once, and the outcome of all.

use super::harness::{TestSchedule, cron, for_tag};
use serde_json::json;
use tandem_record::conversation::{
    ScheduleCommand, ScheduleEventBody as Body, ScheduleWork, ScheduledOutcome as Outcome,
};

fn campaign(scheduler: serde_json::Value, users: usize) -> TestSchedule {
    let config = json!({"scheduler": scheduler});
    let mut test = TestSchedule::new(config, &for_tag(cron("0 9 * * *")));
    test.clock_at("2031-03-03T09:00:00Z");
    let run_id = test.run();
    assert_eq!(test.take_work(), [ScheduleWork::ResolveSegment { run_id }]);
    let names: Vec<String> = (0..users).map(|i| format!("u{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    test.list(&names);
    test
}

/// Z-174
#[test]
fn outcome_of_a_campaign_follows_from_those_of_its_recipients() {
    use Outcome::{CanceledHitl, Failed, Skipped, Success};
    let cases: [(&[Outcome], Outcome, bool); 8] = [
        (&[Success, Success], Success, false),
        (&[Success, Failed], Success, true),
        (&[Success, CanceledHitl, Skipped], Success, true),
        (&[CanceledHitl, CanceledHitl], CanceledHitl, false),
        (&[CanceledHitl, Failed], Failed, false),
        (&[Skipped, Failed], Failed, false),
        (&[Skipped, Skipped], Skipped, false),
        (&[Skipped, CanceledHitl], Skipped, false),
    ];
    for (outcomes, expected, partial) in cases {
        let mut test = campaign(json!({}), outcomes.len());
        let run = test.run();
        for (ordinal, outcome) in outcomes.iter().enumerate() {
            test.start(&run, ordinal as u32);
            test.finish(&run, ordinal as u32, *outcome, None);
        }
        let count = |of: Outcome| outcomes.iter().filter(|outcome| **outcome == of).count();
        let counts = [
            count(Success),
            count(Skipped),
            count(Failed),
            count(CanceledHitl),
        ];
        let expected = json!({"outcome": expected, "reason": null, "partial": partial,
            "attempt": 1, "counts": counts});
        assert_eq!(test.finished(), [expected], "{outcomes:?}");
    }
    let empty = campaign(json!({}), 0);
    let expected = json!({"outcome": "skipped", "reason": "empty_segment", "partial": false,
        "attempt": 1, "counts": [0, 0, 0, 0]});
    assert_eq!(empty.finished(), [expected]);
}

/// Z-176 (half: at most maxConcurrentRuns turns at once)
#[test]
fn few_turns_run_at_once() {
    let mut test = campaign(json!({"maxConcurrentRuns": 2}), 5);
    let run = test.run();
    assert_eq!(test.take_turns(), [0, 1]);
    test.start(&run, 0);
    test.start(&run, 1);
    assert!(test.take_turns().is_empty());
    test.finish(&run, 1, Outcome::Failed, Some("exception"));
    assert_eq!(test.take_turns(), [2]);
    test.finish(&run, 0, Outcome::Success, None);
    assert_eq!(test.take_turns(), [3]);
}

/// Z-176 (half: a number of turns begins within a minute)
#[test]
fn turns_begin_at_a_rate() {
    let mut test = campaign(json!({"perMinute": 2}), 5);
    let run = test.run();
    assert_eq!(test.take_turns(), [0, 1]);
    for ordinal in 0..2 {
        test.start(&run, ordinal);
        test.finish(&run, ordinal, Outcome::Success, None);
    }
    assert!(test.take_turns().is_empty());
    test.clock_at("2031-03-03T09:01:00Z");
    assert_eq!(test.take_turns(), [2, 3]);
    test.clock_at("2031-03-03T09:02:00Z");
    assert_eq!(test.take_turns(), [4]);
}

/// Z-173 (half: the list is stored with the run and a takeover continues it)
#[test]
fn takeover_continues_the_list() {
    let mut test = campaign(json!({"maxConcurrentRuns": 1}), 3);
    let listed = test.events.iter().find_map(|event| match event {
        Body::RecipientsListed { users, .. } => Some(users.clone()),
        _ => None,
    });
    assert_eq!(
        listed,
        Some(vec!["u0".to_owned(), "u1".to_owned(), "u2".to_owned()])
    );
    let run = test.run();
    test.take_work();
    test.start(&run, 0);
    test.process = "p2";
    // Whoever comes next may have found other users; the list stays.
    test.list(&["other"]);
    test.finish(&run, 0, Outcome::Success, None);
    assert_eq!(test.take_turns(), [1]);
    for ordinal in 1..3 {
        test.start(&run, ordinal);
        test.finish(&run, ordinal, Outcome::Success, None);
    }
    let expected = json!({"outcome": "success", "reason": null, "partial": false, "attempt": 2,
        "counts": [3, 0, 0, 0]});
    assert_eq!(test.finished(), [expected]);
}

#[test]
fn state_of_ten_thousand_recipients_is_small() {
    use crate::machine::Machine as _;
    let test = campaign(json!({}), 10_000);
    let snapshot = serde_json::to_string(test.schedule.snapshot()).expect("plain data");
    assert!(snapshot.len() < 4_096, "{} bytes", snapshot.len());
}

#[test]
fn cancelled_campaign_begins_no_more_turns() {
    let mut test = campaign(json!({"maxConcurrentRuns": 2}), 5);
    let run = test.run();
    test.take_work();
    test.start(&run, 0);
    test.start(&run, 1);
    let cancel = ScheduleCommand::Cancel {
        expected: None,
        actor: None,
        reason: "admin".to_owned(),
    };
    test.command(cancel).expect("it is cancelled");
    test.finish(&run, 0, Outcome::Success, None);
    test.finish(&run, 1, Outcome::Success, None);
    assert!(test.take_work().is_empty());
    let expected = json!({"outcome": "success", "reason": "schedule_canceled", "partial": true,
        "attempt": 1, "counts": [2, 3, 0, 0]});
    assert_eq!(test.finished(), [expected]);
}

#[test]
fn segment_that_cannot_be_resolved_fails_the_run() {
    let config = json!({});
    let mut test = TestSchedule::new(config, &for_tag(cron("0 9 * * *")));
    test.clock_at("2031-03-03T09:00:00Z");
    let command = ScheduleCommand::ListRecipients {
        run_id: test.run(),
        users: Err("too_many_recipients".to_owned()),
    };
    test.command(command).expect("never refused");
    assert_eq!(test.finished()[0]["reason"], "too_many_recipients");
    assert_eq!(test.finished()[0]["outcome"], "failed");
}
