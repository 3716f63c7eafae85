//! Opening hours: when a desk is open, how open time is counted, what is refused.

use super::{OpeningHours, hours};
use crate::object_reader::{FieldProblems, ObjectReader};
use serde_json::{Value, json};
use tandem_record::Timestamp;

fn read(given: Value) -> Result<OpeningHours, Vec<(String, String)>> {
    let problems = FieldProblems::default();
    let config = json!({ "hours": given });
    let fields = ObjectReader::new(&config, "", &problems).expect("an object");
    let read = hours(&fields);
    let problems = problems.into_inner().into_iter();
    let problems: Vec<_> = problems.map(|p| (p.path, p.message)).collect();
    match problems.is_empty() {
        true => Ok(read.expect("hours without a problem")),
        false => Err(problems),
    }
}

/// Berlin: weekdays in two parts, a short Saturday, one holiday.
fn berlin() -> OpeningHours {
    let day = json!([["09:00", "12:00"], ["13:00", "17:00"]]);
    read(json!({
        "timezone": "Europe/Berlin",
        "week": {"mon": day, "tue": day, "wed": day, "thu": day, "fri": day,
            "sat": [["10:00", "11:00"]]},
        "holidays": ["2026-12-25"],
    }))
    .expect("hours")
}

fn at(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().expect("an instant");
    Timestamp(at.as_millisecond())
}

const HOUR: u64 = 3_600_000;

/// Z-239 (half: hours in a time zone, with holidays)
#[test]
fn desk_is_open_at_the_hours_of_its_wall_clock() {
    let hours = berlin();
    // Winter: one hour ahead of UTC. Summer: two.
    for (instant, is_open) in [
        ("2026-11-18T07:59:59.999Z", false),
        ("2026-11-18T08:00:00Z", true),
        ("2026-11-18T10:59:59.999Z", true),
        ("2026-11-18T11:00:00Z", false),
        ("2026-11-18T12:00:00Z", true),
        ("2026-11-18T16:00:00Z", false),
        ("2026-07-15T07:00:00Z", true),
        ("2026-07-15T06:59:00Z", false),
        ("2026-07-15T15:00:00Z", false),
        // Saturday, Sunday, the holiday (a Friday), the day after.
        ("2026-11-21T09:30:00Z", true),
        ("2026-11-22T09:30:00Z", false),
        ("2026-12-25T09:30:00Z", false),
        ("2026-12-26T09:30:00Z", true),
    ] {
        assert_eq!(hours.is_open(at(instant)), is_open, "{instant}");
    }
}

/// Z-239 (half: a deadline that counts open time)
#[test]
fn open_time_passes_only_while_the_desk_is_open() {
    let hours = berlin();
    for (from, open_hours, until) in [
        // Within a stretch, up to its end, over lunch, over night.
        ("2026-11-18T08:00:00Z", 1, "2026-11-18T09:00:00Z"),
        ("2026-11-18T08:00:00Z", 3, "2026-11-18T11:00:00Z"),
        ("2026-11-18T08:00:00Z", 4, "2026-11-18T13:00:00Z"),
        ("2026-11-18T08:00:00Z", 8, "2026-11-19T09:00:00Z"),
        // Begun while closed: at lunch, in the evening, over the weekend.
        ("2026-11-18T11:30:00Z", 1, "2026-11-18T13:00:00Z"),
        ("2026-11-18T20:00:00Z", 1, "2026-11-19T09:00:00Z"),
        ("2026-11-20T15:00:00Z", 3, "2026-11-23T09:00:00Z"),
        // Over the holiday: Thursday 16:00, Saturday 10:00 to 11:00, Monday.
        ("2026-12-24T15:00:00Z", 2, "2026-12-26T10:00:00Z"),
        ("2026-12-24T15:00:00Z", 3, "2026-12-28T09:00:00Z"),
        // Over the change to summer time, in the night to Sunday 2026-03-29.
        ("2026-03-27T15:00:00Z", 3, "2026-03-30T08:00:00Z"),
    ] {
        let (from, until) = (at(from), at(until));
        let ms = open_hours * HOUR;
        assert_eq!(
            hours.plus_open_ms(from, ms),
            until,
            "{open_hours} from {from:?}"
        );
        assert_eq!(hours.open_ms_between(from, until), ms, "{from:?}");
    }
}

/// A desk that is open when the clock is moved.
#[test]
fn hours_over_a_change_of_the_clock_are_those_that_pass() {
    let nights = |from: &str, to: &str| {
        let week = json!({"sun": [[from, to]]});
        read(json!({"timezone": "Europe/Berlin", "week": week})).expect("hours")
    };
    // 02:00 to 03:00 is skipped on 2026-03-29 and repeated on 2026-10-25.
    for (from, to, spring, autumn) in [
        ("01:00", "04:00", 2, 4),
        ("02:00", "03:00", 0, 2),
        ("02:30", "04:00", 1, 3),
        ("01:00", "02:30", 1, 1),
        ("00:00", "24:00", 23, 25),
    ] {
        let hours = nights(from, to);
        let of_day = |from: &str, to: &str| hours.open_ms_between(at(from), at(to));
        let passed = of_day("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
        assert_eq!(passed, spring * HOUR, "{from} to {to} in spring");
        let passed = of_day("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        let half = match (from, to) {
            // The first 02:30 counts: half an hour and the repeated hour, or half an hour alone.
            ("02:30", _) => 2 * HOUR + HOUR / 2,
            (_, "02:30") => HOUR + HOUR / 2,
            _ => autumn * HOUR,
        };
        assert_eq!(passed, half, "{from} to {to} in autumn");
    }
    // Neighbours share a moment, and no time counts twice.
    let week = json!({"sun": [["00:00", "02:30"], ["02:30", "24:00"]]});
    let split = read(json!({"timezone": "Europe/Berlin", "week": week})).expect("hours");
    for (from, to, hours) in [
        ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", 23),
        ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", 25),
    ] {
        assert_eq!(split.open_ms_between(at(from), at(to)), hours * HOUR);
    }
}

/// Samoa had no 2011-12-30.
#[test]
fn day_that_a_zone_skips_is_not_open() {
    let day = json!([["09:00", "17:00"]]);
    let week = json!({"thu": day, "fri": day, "sat": day});
    let hours = read(json!({"timezone": "Pacific/Apia", "week": week})).expect("hours");
    let days = hours.open_ms_between(at("2011-12-29T12:00:00Z"), at("2012-01-01T12:00:00Z"));
    assert_eq!(days, 16 * HOUR);
}

#[test]
fn moment_beyond_the_calendar_is_closed_and_nothing_overflows() {
    let hours = berlin();
    for at in [Timestamp(i64::MIN), Timestamp(i64::MAX)] {
        assert!(!hours.is_open(at));
        assert_eq!(hours.open_ms_between(at, at), 0);
        assert!(hours.plus_open_ms(at, u64::MAX) >= at);
    }
    // A time that is never over ends after ten years.
    let from = at("2026-11-18T08:00:00Z");
    assert_eq!(
        hours.plus_open_ms(from, u64::MAX),
        from.plus_ms(3_660 * 24 * HOUR)
    );
}

#[test]
fn zone_is_utc_unless_given() {
    let hours = read(json!({"week": {"wed": [["09:00", "10:00"]]}})).expect("hours");
    assert!(hours.is_open(at("2026-11-18T09:00:00Z")));
    assert!(!hours.is_open(at("2026-11-18T08:59:59Z")));
}

#[test]
fn problems_name_their_place() {
    let fine = json!([["09:00", "17:00"]]);
    for (given, path, part) in [
        (json!({}), "/hours/week", "is required"),
        (json!({"week": {}}), "/hours/week", "no time"),
        (json!({"week": {"mon": []}}), "/hours/week", "no time"),
        (
            json!({"week": {"monday": fine}}),
            "/hours/week/monday",
            "mon, tue",
        ),
        (
            json!({"week": {"mon": fine}, "timezone": "Mars/Base"}),
            "/hours/timezone",
            "Europe/Berlin",
        ),
        (
            json!({"week": {"mon": [["9:00", "17:00"]]}}),
            "/hours/week/mon",
            "entry 1",
        ),
        (
            json!({"week": {"mon": [["09:00"]]}}),
            "/hours/week/mon",
            "two times",
        ),
        (
            json!({"week": {"mon": [["09:00", "24:01"]]}}),
            "/hours/week/mon",
            "two times",
        ),
        (
            json!({"week": {"mon": [["09:60", "17:00"]]}}),
            "/hours/week/mon",
            "two times",
        ),
        (
            json!({"week": {"mon": [["22:00", "02:00"]]}}),
            "/hours/week/mon",
            "24:00",
        ),
        (
            json!({"week": {"mon": [["09:00", "09:00"]]}}),
            "/hours/week/mon",
            "ends before",
        ),
        (
            json!({"week": {"mon": [["12:00", "14:00"], ["09:00", "12:01"]]}}),
            "/hours/week/mon",
            "overlap",
        ),
        (
            json!({"week": {"mon": fine}, "holidays": ["2026-02-30"]}),
            "/hours/holidays",
            "no date",
        ),
        (
            json!({"week": {"mon": fine}, "holidays": ["20261225"]}),
            "/hours/holidays",
            "no date",
        ),
    ] {
        let problems = read(given.clone()).expect_err(&format!("{given} is refused"));
        let found = problems
            .iter()
            .any(|(at, why)| at == path && why.contains(part));
        assert!(found, "{given}: {problems:?}");
    }
}
