//! Cron expressions, and what changes of the clock do to their times.

use super::harness::{at, shown};
use crate::schedule::{Occurrences, parse_cron};
use tandem_record::Timestamp;
use tandem_record::conversation::ScheduleTrigger;

fn times(expr: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let trigger = ScheduleTrigger::Cron {
        expr: expr.to_owned(),
    };
    let occurrences = Occurrences::of(&trigger, zone).expect("a good expression");
    let first = occurrences.after(at(from));
    let all = std::iter::successors(first, |at| occurrences.after(*at));
    let found: Vec<Timestamp> = all.take(count).collect();
    let last = *found.last().expect("it takes place");
    // What was found forwards is found backwards.
    assert_eq!(occurrences.last(last, at(from).plus_ms(1), count), found);
    found.into_iter().map(shown).collect()
}

/// Z-158 (half: five fields with lists, ranges, steps and names; either day matches)
#[test]
fn five_fields_with_lists_ranges_steps_and_names() {
    let from = "2031-03-03T08:30:05Z";
    assert_eq!(
        times("*/20 9,17 * * mon-fri", "UTC", from, 4),
        [
            "2031-03-03T09:00:00Z",
            "2031-03-03T09:20:00Z",
            "2031-03-03T09:40:00Z",
            "2031-03-03T17:00:00Z"
        ]
    );
    // The 13th, and every Friday.
    assert_eq!(
        times("0 12 13 * fri", "UTC", from, 3),
        [
            "2031-03-07T12:00:00Z",
            "2031-03-13T12:00:00Z",
            "2031-03-14T12:00:00Z"
        ]
    );
    assert_eq!(
        times("0 0 29 feb *", "UTC", from, 2),
        ["2032-02-29T00:00:00Z", "2036-02-29T00:00:00Z"]
    );
    assert_eq!(
        times("5 4 * * 7", "UTC", from, 1),
        times("5 4 * * sun", "UTC", from, 1)
    );
}

/// Z-158 (half: an agent-wide zone; a skipped time takes place at the change, a repeated one once, at the first)
#[test]
fn changes_of_the_clock_move_times_and_repeat_none() {
    // Berlin skips from 02:00 to 03:00 on 30 March 2031.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2031-03-29T00:00:00Z", 3),
        [
            "2031-03-29T01:30:00Z",
            "2031-03-30T01:00:00Z",
            "2031-03-31T00:30:00Z"
        ]
    );
    // Four times that the clock skips and 03:00 itself are one moment.
    assert_eq!(
        times("*/15 * * * *", "Europe/Berlin", "2031-03-30T00:40:00Z", 3),
        [
            "2031-03-30T00:45:00Z",
            "2031-03-30T01:00:00Z",
            "2031-03-30T01:15:00Z"
        ]
    );
    // Berlin repeats 02:00 to 03:00 on 26 October 2031.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2031-10-25T22:00:00Z", 2),
        ["2031-10-26T00:30:00Z", "2031-10-27T01:30:00Z"]
    );
    assert_eq!(
        times("30 * * * *", "Europe/Berlin", "2031-10-25T23:00:00Z", 3),
        [
            "2031-10-25T23:30:00Z",
            "2031-10-26T00:30:00Z",
            "2031-10-26T02:30:00Z"
        ]
    );
    // Samoa skipped a whole day.
    assert_eq!(
        times("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 3),
        [
            "2011-12-29T19:00:00Z",
            "2011-12-30T10:00:00Z",
            "2011-12-30T19:00:00Z"
        ]
    );
}

#[test]
fn other_things_than_the_five_fields_are_refused() {
    for bad in [
        "",
        "0 9 * *",
        "0 0 9 * * *",
        "61 9 * * *",
        "0 24 * * *",
        "0 9 0 * *",
        "0 9 * 13 *",
        "0 9 * * 8",
        "@daily",
        "0 9 L * *",
        "0 9 * * mon#2",
        "0 9 15W * *",
        "0 9 ? * *",
        "0 9 * mon *",
        "0 9 * * jan",
        "*/0 * * * *",
        "5-1 * * * *",
    ] {
        assert!(parse_cron(bad).is_err(), "{bad:?} is accepted");
    }
}

#[test]
fn expression_that_never_takes_place_is_refused() {
    for never in ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"] {
        let why = parse_cron(never)
            .map(drop)
            .expect_err("it never takes place");
        assert!(why.contains("never"), "{never}: {why}");
    }
}

#[test]
fn unknown_zones_are_refused() {
    let trigger = ScheduleTrigger::Once {
        run_at: Timestamp(0),
    };
    assert!(Occurrences::of(&trigger, "Europe/Nowhere").is_err());
}

#[test]
fn moment_is_read_on_the_clock_of_the_zone() {
    let trigger = ScheduleTrigger::Cron {
        expr: "0 9 * * *".to_owned(),
    };
    let berlin = Occurrences::of(&trigger, "Europe/Berlin").unwrap();
    for (moment, local) in [
        ("2031-07-01T07:00:00Z", "Tue 1 Jul 2031, 09:00"),
        ("2031-12-01T08:00:05Z", "Mon 1 Dec 2031, 09:00:05"),
    ] {
        assert_eq!(berlin.wall_clock(at(moment)).as_deref(), Some(local));
    }
}
