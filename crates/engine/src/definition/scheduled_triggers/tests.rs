//! What a schedule trigger may say, and where each mistake is found.

use super::{HORIZON_EXCEEDED, scheduled_trigger_hashes};
use crate::definition::tests::{sound_with, with};
use crate::definition::{Definition, Permissions, Problem};
use serde_json::{Value, json};
use tandem_record::Timestamp;

fn document(config: Value) -> Value {
    let trigger = json!({"id": "daily", "type": "schedule", "config": config});
    sound_with("/triggers/-", trigger)
}

fn admit(document: &Value) -> Result<Definition, Vec<Problem>> {
    Definition::admit(document, Permissions::default())
}

fn now() -> Timestamp {
    let at: jiff::Timestamp = "2031-03-03T08:30:05Z".parse().expect("an instant");
    Timestamp(at.as_millisecond())
}

/// Where the registration of a trigger is refused now.
fn refused(config: Value) -> Vec<Problem> {
    match admit(&document(config)) {
        Err(problems) => problems,
        Ok(definition) => {
            let triggers = definition.scheduled_triggers();
            let problems = triggers
                .iter()
                .filter_map(|trigger| trigger.problem_at(now()));
            problems.collect()
        }
    }
}

#[test]
fn triggers_that_can_work_are_read() {
    for config in [
        json!({"cron": "0 9 * * mon-fri"}),
        json!({"cron": "0 9 29 2 *", "timezone": "Europe/Berlin", "missedTick": "fire-once"}),
        json!({"at": "2031-03-03T09:00:00Z", "inputs": {}}),
        json!({"at": "2031-03-03T09:45:00", "timezone": "Europe/Berlin"}),
        json!({"at": "2031-03-03T08:00:00Z", "missedTick": "fire-once"}),
        json!({"delayMs": 0}),
        json!({"cron": "* * * * *", "x-note": "for people"}),
    ] {
        assert_eq!(refused(config.clone()), [], "{config}");
        let triggers = admit(&document(config))
            .expect("it is sound")
            .scheduled_triggers();
        assert_eq!(triggers.len(), 1);
    }
}

#[test]
fn triggers_that_cannot_work_are_refused_at_their_place() {
    let day_of_never = json!({"cron": "0 9 31 2 *"});
    for (config, place) in [
        (json!({}), ""),
        (json!({"cron": "61 9 * * *"}), "/cron"),
        (json!({"cron": 9}), "/cron"),
        (day_of_never, "/cron"),
        (
            json!({"cron": "0 9 * * *", "at": "2031-03-03T09:00:00Z"}),
            "/at",
        ),
        (json!({"cron": "0 9 * * *", "delayMs": 5}), "/delayMs"),
        (
            json!({"cron": "0 9 * * *", "timezone": "Mars/Base"}),
            "/timezone",
        ),
        (
            json!({"cron": "0 9 * * *", "missedTick": "catch-up"}),
            "/missedTick",
        ),
        (json!({"cron": "0 9 * * *", "inputs": [1]}), "/inputs"),
        (
            json!({"cron": "0 9 * * *", "inputs": {"x": "y".repeat(70_000)}}),
            "/inputs",
        ),
        (
            json!({"cron": "0 9 * * *", "misedTick": "skip"}),
            "/misedTick",
        ),
        (json!({"at": "tomorrow"}), "/at"),
        (json!({"at": "2031-03-03T08:30:00Z"}), "/at"),
        (
            json!({"at": "2029-03-03T08:30:00Z", "missedTick": "fire-once"}),
            "/at",
        ),
        (json!({"delayMs": -1}), "/delayMs"),
    ] {
        let problems = refused(config.clone());
        let places: Vec<&str> = problems
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        assert_eq!(places, [format!("/triggers/1/config{place}")], "{config}");
    }
}

#[test]
fn moment_beyond_the_horizon_has_the_reason_of_the_protocol() {
    const YEAR_MS: u64 = 366 * 86_400_000;
    for config in [
        json!({"at": "2042-03-03T08:30:00Z"}),
        json!({"delayMs": 11 * YEAR_MS}),
    ] {
        assert_eq!(refused(config)[0].reason, Some(HORIZON_EXCEEDED));
    }
    assert_eq!(refused(json!({"delayMs": 9 * YEAR_MS})), []);
}

#[test]
fn inputs_that_no_run_could_start_with_are_refused() {
    let of = |inputs: Value| document(json!({"cron": "0 9 * * *", "inputs": inputs}));
    let variable = json!({"name": "customer", "type": "string", "required": true});
    for (inputs, is_sound) in [
        (json!({"customer": "ana"}), true),
        (json!({"customer": 5}), false),
        (json!({}), false),
    ] {
        let admitted = admit(&with(of(inputs), "/variables/-", variable.clone()));
        match admitted {
            Ok(_) => assert!(is_sound),
            Err(problems) => {
                assert!(!is_sound, "{problems:?}");
                assert_eq!(problems[0].path, "/triggers/1/config/inputs/customer");
            }
        }
    }
    let channel = with(
        of(json!({"log": 1})),
        "/channels",
        json!({"log": {"reducer": "append"}}),
    );
    let problems = admit(&channel).expect_err("a channel is no input");
    assert_eq!(problems[0].path, "/triggers/1/config/inputs/log");
}

#[test]
fn triggers_that_are_off_schedule_nothing() {
    let on = document(json!({"cron": "0 9 * * *"}));
    let hashes = scheduled_trigger_hashes(&on);
    let trigger = admit(&on)
        .expect("it is sound")
        .scheduled_triggers()
        .remove(0);
    assert_eq!(hashes.get("daily"), Some(&trigger.hash));
    let disabled = with(on.clone(), "/triggers/1/enabled", json!(false));
    let inactive = with(on.clone(), "/status", json!("inactive"));
    let broken = with(disabled.clone(), "/triggers/1/config/cron", json!("never"));
    for off in [disabled, inactive, broken] {
        assert!(scheduled_trigger_hashes(&off).is_empty());
        assert!(
            admit(&off)
                .expect("it is sound")
                .scheduled_triggers()
                .is_empty()
        );
    }
    let changed = with(on, "/triggers/1/config/cron", json!("0 10 * * *"));
    assert_ne!(scheduled_trigger_hashes(&changed), hashes);
}
