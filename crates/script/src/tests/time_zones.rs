//! `Date` in the agent's time zone.

use super::fixtures::*;
use crate::{FlowInstance, FlowStart, ScriptLimits, Surroundings};
use serde_json::json;

fn in_berlin(expression: &str) -> String {
    let (set, _) = source_of(&format!(
        "export async function* main(ctx) {{ yield ctx.say(String({expression})); }}"
    ));
    let surroundings = Surroundings {
        time_zone: "Europe/Berlin".to_owned(),
        ..surroundings()
    };
    let start = FlowStart {
        flow_id: "main",
        context: &object(json!({})),
        surroundings: &surroundings,
    };
    let mut run = FlowInstance::create(set, ScriptLimits::default(), &start).expect("a flow");
    say_text(run.next(None))
}

/// Z-207 (half: local fields, strings and offsets are those of the agent's zone)
#[test]
fn local_fields_are_those_of_the_zone() {
    assert_eq!(in_berlin("new Date().getHours()"), "13");
    assert_eq!(
        in_berlin("new Date('2026-07-01T12:00:00Z').getHours()"),
        "14"
    );
    assert_eq!(in_berlin("new Date().getTimezoneOffset()"), "-60");
    assert_eq!(in_berlin("new Date()"), "Thu Jan 01 2026 13:00:00 GMT+0100");
    assert_eq!(
        in_berlin("new Date().toLocaleString()"),
        "1/1/2026, 1:00:00 PM"
    );
}

/// Z-207 (half: local times are read in the agent's zone, those with an offset are not)
#[test]
fn local_times_are_read_in_the_zone() {
    for (text, expected) in [
        (
            "new Date('2026-01-01T12:00:00')",
            "2026-01-01T11:00:00.000Z",
        ),
        ("new Date('2026-01-01')", "2026-01-01T00:00:00.000Z"),
        (
            "new Date('2026-01-01T12:00:00+03:00')",
            "2026-01-01T09:00:00.000Z",
        ),
        (
            "new Date('Jan 1, 2026 12:00:00')",
            "2026-01-01T11:00:00.000Z",
        ),
        (
            "new Date('Thu Jan 01 2026 12:00:00 GMT+0000')",
            "2026-01-01T12:00:00.000Z",
        ),
        ("new Date(2026, 6, 1, 12)", "2026-07-01T10:00:00.000Z"),
        ("new Date(Date.UTC(2026, 0, 1))", "2026-01-01T00:00:00.000Z"),
        ("new Date(new Date(5))", "1970-01-01T00:00:00.005Z"),
    ] {
        assert_eq!(
            in_berlin(&format!("{text}.toISOString()")),
            expected,
            "{text}"
        );
    }
}

/// Z-207 (half: setters keep to the zone, and clocks that change are respected)
#[test]
fn setters_work_in_the_zone() {
    assert_eq!(
        in_berlin(
            "(() => { const d = new Date('2026-03-28T12:00:00'); d.setDate(d.getDate() + 1); return d.toISOString(); })()"
        ),
        "2026-03-29T10:00:00.000Z"
    );
    assert_eq!(in_berlin("new Date(NaN)"), "Invalid Date");
    assert_eq!(
        in_berlin(
            "[new Date() instanceof Date, typeof Date(), new Date().constructor === Date].join()"
        ),
        "true,string,true"
    );
    assert_eq!(
        in_berlin("JSON.stringify({ d: new Date(0) })"),
        r#"{"d":"1970-01-01T00:00:00.000Z"}"#
    );
}
