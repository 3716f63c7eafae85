//! Opening hours of a desk: when somebody is there, and how much of a time span that is.
//!
//! Hours are those of a wall clock in a time zone (`local_time.rs`).
//!
//! Bounds: times of a day, holidays, and how far ahead a moment is looked for.

use crate::local_time::{self, moment_of};
use crate::object_reader::ObjectReader;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::collections::BTreeSet;
use tandem_record::Timestamp;

const MAX_TIMES_OF_A_DAY: usize = 24;
const MAX_HOLIDAYS: usize = 1_000;
/// A span of open time that is not over after ten years ends there.
const MAX_DAYS: usize = 3_660;
const DAY_MS: u64 = 86_400_000;
const MINUTES_OF_A_DAY: u16 = 24 * 60;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// When a desk is open. It is open at some time of the week.
#[derive(Debug, Clone, PartialEq)]
pub struct OpeningHours {
    zone: TimeZone,
    /// From Monday on. In order, without overlaps.
    week: [Vec<OpenTime>; 7],
    /// Closed all day.
    holidays: BTreeSet<Date>,
}

/// Minutes of a local day. The end may be that of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OpenTime {
    from: u16,
    to: u16,
}

impl OpeningHours {
    pub fn is_open(&self, at: Timestamp) -> bool {
        let mut open = self.open_from(at);
        open.next().is_some_and(|(from, _)| from <= at)
    }

    /// When this much open time has passed.
    pub fn plus_open_ms(&self, at: Timestamp, ms: u64) -> Timestamp {
        let mut left = ms;
        for (from, to) in self.open_from(at) {
            let from = from.max(at);
            let open = to.ms_since(from);
            if left <= open {
                return from.plus_ms(left);
            }
            left -= open;
        }
        at.plus_ms(DAY_MS * MAX_DAYS as u64)
    }

    /// How much open time is between two moments.
    pub fn open_ms_between(&self, from: Timestamp, to: Timestamp) -> u64 {
        let open = self.open_from(from).take_while(|(opens, _)| *opens < to);
        open.map(|(opens, closes)| closes.min(to).ms_since(opens.max(from)))
            .sum()
    }

    /// The stretches of open time that end after a moment, in order.
    fn open_from(&self, at: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let local = jiff::Timestamp::from_millisecond(at.0).ok();
        // A day of the wall clock may begin again when the clock is moved at midnight.
        let first = local.map(|local| self.zone.to_datetime(local).date());
        let first = first.map(|date| date.yesterday().unwrap_or(date));
        let days = std::iter::successors(first, |date| date.tomorrow().ok()).take(MAX_DAYS);
        days.flat_map(|date| self.open_on(date))
            .filter(move |(_, to)| *to > at)
    }

    fn open_on(&self, date: Date) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let day = usize::from(date.weekday().to_monday_zero_offset().unsigned_abs());
        let times: &[OpenTime] = match self.holidays.contains(&date) {
            true => &[],
            false => &self.week[day],
        };
        let stretches = times.iter().filter_map(move |time| {
            let from = self.moment(date, time.from)?;
            let to = self.moment(date, time.to)?;
            Some((from, to))
        });
        stretches.filter(|(from, to)| from < to)
    }

    /// The moment of a wall clock's time. `None` beyond the end of the calendar.
    fn moment(&self, date: Date, minute: u16) -> Option<Timestamp> {
        let local = match minute {
            MINUTES_OF_A_DAY => date.tomorrow().ok()?.at(0, 0, 0, 0),
            minute => date.at((minute / 60) as i8, (minute % 60) as i8, 0, 0),
        };
        moment_of(&self.zone, local).map(|moment| Timestamp(moment.as_millisecond()))
    }
}

/// Reads `hours`. Problems are reported; there are no hours then.
pub(super) fn hours(fields: &ObjectReader<'_>) -> Option<OpeningHours> {
    let hours = fields.object("hours")?;
    let zone = zone(&hours);
    let week = week(&hours);
    let holidays = holidays(&hours);
    Some(OpeningHours {
        zone: zone?,
        week: week?,
        holidays,
    })
}

fn zone(hours: &ObjectReader<'_>) -> Option<TimeZone> {
    let Some(name) = hours.raw_text("timezone") else {
        return Some(TimeZone::UTC);
    };
    let zone = local_time::zone(&name);
    if zone.is_none() {
        let message = format!("{name:?} is no time zone; write one such as Europe/Berlin");
        hours.report("timezone", message);
    }
    zone
}

fn week(hours: &ObjectReader<'_>) -> Option<[Vec<OpenTime>; 7]> {
    if hours.get("week").is_none() {
        hours.report("week", "is required");
        return None;
    }
    let days = hours.object("week")?;
    for (name, _) in hours.entries("week", DAYS.len()) {
        if !DAYS.contains(&name) {
            days.report(name, format!("is no day; days are {}", DAYS.join(", ")));
        }
    }
    let week = DAYS.map(|day| times_of(&days, day));
    if week.iter().all(Vec::is_empty) {
        hours.report("week", "has no time at which the desk is open");
        return None;
    }
    Some(week)
}

fn times_of(days: &ObjectReader<'_>, day: &str) -> Vec<OpenTime> {
    let given = days.list(day, MAX_TIMES_OF_A_DAY).unwrap_or_default();
    let mut times: Vec<OpenTime> = Vec::new();
    for (i, pair) in given.iter().enumerate() {
        match open_time(pair) {
            Ok(time) => times.push(time),
            Err(why) => days.report(day, format!("entry {}: {why}", i + 1)),
        }
    }
    times.sort_unstable();
    if times.windows(2).any(|pair| pair[0].to > pair[1].from) {
        days.report(day, "has times that overlap");
    }
    times
}

fn open_time(pair: &Value) -> Result<OpenTime, &'static str> {
    const FORM: &str = "must be two times such as [\"09:00\", \"17:00\"]";
    let [from, to] = pair.as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(FORM);
    };
    let minute = |time: &Value| minute_of(time.as_str()?);
    let (from, to) = minute(from).zip(minute(to)).ok_or(FORM)?;
    match from < to {
        true => Ok(OpenTime { from, to }),
        false => Err("ends before it begins; split a night at \"24:00\" and \"00:00\""),
    }
}

/// The minute of a day that `HH:MM` means; 24:00 is its end.
fn minute_of(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let number =
        |digits: &str| match digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse::<u16>().ok(),
            false => None,
        };
    let (hour, minute) = (number(hour)?, number(minute)?);
    let of_day = hour * 60 + minute;
    (minute < 60 && of_day <= MINUTES_OF_A_DAY).then_some(of_day)
}

fn holidays(hours: &ObjectReader<'_>) -> BTreeSet<Date> {
    let given = hours.texts("holidays", MAX_HOLIDAYS).unwrap_or_default();
    let read = given.iter().filter_map(|text| {
        let date = text.parse::<Date>().ok();
        // Shorter and longer forms of dates exist, and nobody expects them here.
        let date = date.filter(|date| date.to_string() == *text);
        if date.is_none() {
            let message = format!("{text:?} is no date; write one such as 2026-12-25");
            hours.report("holidays", message);
        }
        date
    });
    read.collect()
}

#[cfg(test)]
mod tests;
