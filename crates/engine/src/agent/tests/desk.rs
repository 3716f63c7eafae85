//! Settings of a desk: hours, queues, fallbacks of targets.

use super::{problems, spec, with};
use serde_json::{Value, json};
use tandem_record::Timestamp;

/// Open on Wednesdays from 09:00 to 17:00, UTC.
fn wednesdays() -> Value {
    json!({"week": {"wed": [["09:00", "17:00"]]}})
}

fn target(more: Value) -> Value {
    let mut target = json!({"transport": "loopback", "address": "a"});
    let more = more.as_object().expect("an object").clone();
    target.as_object_mut().expect("an object").extend(more);
    target
}

fn at(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().expect("an instant");
    Timestamp(at.as_millisecond())
}

const OPEN: &str = "2026-11-18T10:00:00Z";
const CLOSED: &str = "2026-11-18T20:00:00Z";

/// Z-239 (half: a target names a fallback)
#[test]
fn closed_target_is_replaced_by_its_first_open_fallback() {
    let config = with(json!({"hours": wednesdays(), "hitl": {"targets": {
        "day": target(json!({"hours": wednesdays(), "fallbackTarget": "evening"})),
        "evening": target(json!({"fallbackTarget": "night",
            "hours": {"week": {"wed": [["17:00", "21:00"]]}}})),
        "night": target(json!({})),
        "plain": target(json!({"fallbackTarget": "night"})),
        "alone": target(json!({"hours": wednesdays()})),
        "last": target(json!({"hours": wednesdays(), "fallbackTarget": "alone"})),
    }}}));
    let hitl = spec(&config).hitl;
    for (named, now, used) in [
        ("day", OPEN, "day"),
        ("day", CLOSED, "evening"),
        ("day", "2026-11-18T22:00:00Z", "night"),
        // A target without hours keeps those of the agent; as a fallback it is always there.
        ("plain", OPEN, "plain"),
        ("plain", CLOSED, "night"),
        // Nobody is there: it stays the one that was meant.
        ("alone", CLOSED, "alone"),
        ("last", CLOSED, "last"),
        ("nobody", CLOSED, "nobody"),
    ] {
        assert_eq!(hitl.target_at(named, at(now)), used, "{named} at {now}");
    }
}

#[test]
fn settings_of_a_desk_that_cannot_work_are_refused() {
    let targets = |targets: Value| json!({"hitl": {"targets": targets}});
    for (given, path) in [
        (
            json!({"hitl": {"escalationDefaults": {"outsideHoursText": "x"}}}),
            "/hitl/escalationDefaults/outsideHoursText",
        ),
        (
            json!({"hitl": {"escalationDefaults": {"countOpenHoursOnly": true}}}),
            "/hitl/escalationDefaults/countOpenHoursOnly",
        ),
        (json!({"hours": {"week": {}}}), "/hours/week"),
        (
            targets(json!({"a": target(json!({"hours": {"week": {"mo": []}}}))})),
            "/hitl/targets/a/hours/week/mo",
        ),
        (
            targets(json!({"a": target(json!({"fallbackTarget": "b"})), "b": target(json!({}))})),
            "/hitl/targets/a/fallbackTarget",
        ),
        (
            targets(json!({"a": target(json!({"fallbackTarget": "a", "hours": wednesdays()}))})),
            "/hitl/targets/a/fallbackTarget",
        ),
        (
            targets(
                json!({"a": target(json!({"fallbackTarget": "b", "hours": wednesdays()})),
                "b": target(json!({"fallbackTarget": "a", "hours": wednesdays()}))}),
            ),
            "/hitl/targets/b/fallbackTarget",
        ),
    ] {
        let found = problems(&with(given.clone()), &[]);
        assert!(found.iter().any(|p| p.path == path), "{given}: {found:?}");
    }
}

#[test]
fn hours_of_the_target_of_takeovers_are_enough_for_the_settings() {
    let config = with(json!({"hitl": {
        "targets": {"desk": target(json!({"hours": wednesdays()}))},
        "takeover": {"adapter": "desk"},
        "escalationDefaults": {"outsideHoursText": "x", "countOpenHoursOnly": true, "queue": "front"},
    }}));
    let hitl = spec(&config).hitl;
    assert_eq!(hitl.escalation.queue.as_deref(), Some("front"));
    let hours = |mode| hitl.escalation_hours(mode).is_some();
    assert!(hours(
        tandem_record::conversation::EscalationMode::LiveTakeover
    ));
    assert!(!hours(
        tandem_record::conversation::EscalationMode::AsyncResolution
    ));
}
