//! When a schedule takes place.
//!
//! A cron expression is read on the wall clock and each of its times becomes a moment (`local_time.rs`): a time that a
//! change of the clock skips takes place at the change, one that it repeats takes place once, at the first.

use crate::local_time;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Zoned};
use tandem_record::Timestamp;
use tandem_record::conversation::ScheduleTrigger;

const FIELDS: usize = 5;
const MAX_BYTES: usize = 256;
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Changes of the clock move times by less than this.
const CLOCK_CHANGE_HOURS: i64 = 3;
/// Times looked at to find one moment: more than a day of minutes, for a clock that skips a day.
const MAX_STEPS: usize = 3_000;

/// Reads five fields: minute, hour, day of the month, month, day of the week. Where both days are restricted, either
/// matches.
pub fn parse_cron(expr: &str) -> Result<Cron, String> {
    let fields: Vec<&str> = expr.split_whitespace().collect();
    if fields.len() != FIELDS || expr.len() > MAX_BYTES {
        return Err(format!(
            "has {} fields; write five: minute, hour, day of the month, month, day of the week",
            fields.len()
        ));
    }
    for (i, field) in fields.iter().enumerate() {
        let names: &[&str] = match i {
            3 => &MONTHS,
            4 => &DAYS,
            _ => &[],
        };
        let known = |c: char| c.is_ascii_alphanumeric() || "*,-/".contains(c);
        let words = field.split(|c: char| !c.is_ascii_alphabetic());
        let mut words = words.filter(|word| !word.is_empty());
        if !field.chars().all(known)
            || words.any(|word| !names.contains(&word.to_ascii_lowercase().as_str()))
        {
            return Err(format!(
                "field {:?} has other things than numbers, names, lists, ranges and steps",
                *field
            ));
        }
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let cron = parser
        .parse(expr)
        .map_err(|error| format!("is no cron expression: {error}"))?;
    let start = DateTime::constant(2_024, 1, 1, 0, 0, 0, 0);
    match next_local(&cron, start, true) {
        Some(_) => Ok(cron),
        None => Err("never takes place".to_owned()),
    }
}

/// The wall clock as a calendar without changes.
fn calendar(local: DateTime) -> Option<Zoned> {
    local.to_zoned(TimeZone::UTC).ok()
}

fn next_local(cron: &Cron, from: DateTime, inclusive: bool) -> Option<DateTime> {
    let found = cron
        .find_next_occurrence(&calendar(from)?, inclusive)
        .ok()?;
    Some(found.datetime())
}

fn previous_local(cron: &Cron, from: DateTime, inclusive: bool) -> Option<DateTime> {
    let found = cron.find_previous_occurrence(&calendar(from)?, inclusive);
    Some(found.ok()?.datetime())
}

/// The occurrences of one trigger.
pub struct Occurrences {
    times: Times,
    zone: TimeZone,
}

enum Times {
    Cron(Box<Cron>),
    Once(Timestamp),
}

impl Occurrences {
    pub fn of(trigger: &ScheduleTrigger, timezone: &str) -> Result<Self, String> {
        let zone = local_time::zone(timezone);
        let zone = zone.ok_or_else(|| format!("{timezone:?} is no time zone"))?;
        let times = match trigger {
            ScheduleTrigger::Cron { expr } => Times::Cron(Box::new(parse_cron(expr)?)),
            ScheduleTrigger::Once { run_at } => Times::Once(*run_at),
        };
        Ok(Self { times, zone })
    }

    fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let moment = local_time::moment_of(&self.zone, local)?;
        Some(Timestamp(moment.as_millisecond()))
    }

    fn local(&self, at: Timestamp) -> Option<DateTime> {
        let at = jiff::Timestamp::from_millisecond(at.0).ok()?;
        Some(self.zone.to_datetime(at))
    }

    /// A moment as people of the zone read it on their clock.
    pub fn wall_clock(&self, at: Timestamp) -> Option<String> {
        let local = self.local(at)?;
        let format = match local.second() {
            0 => "%a %-d %b %Y, %H:%M",
            _ => "%a %-d %b %Y, %H:%M:%S",
        };
        Some(local.strftime(format).to_string())
    }

    /// The first one after a moment.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let cron = match &self.times {
            Times::Once(run_at) => return Some(*run_at).filter(|run_at| *run_at > at),
            Times::Cron(cron) => cron,
        };
        let mut from = self.local(at)?;
        if self.has_change_near(at) {
            from = from
                .checked_sub(Span::new().hours(CLOCK_CHANGE_HOURS))
                .ok()?;
        }
        for _ in 0..MAX_STEPS {
            from = next_local(cron, from, false)?;
            let found = self.moment(from)?;
            if found > at {
                return Some(found);
            }
        }
        None
    }

    /// The last ones up to a moment and not before another, at most `max`, the oldest first.
    pub fn last(&self, until: Timestamp, not_before: Timestamp, max: usize) -> Vec<Timestamp> {
        let cron = match &self.times {
            Times::Once(run_at) => {
                let fits = max > 0 && (not_before..=until).contains(run_at);
                return fits.then_some(*run_at).into_iter().collect();
            }
            Times::Cron(cron) => cron,
        };
        let mut found: Vec<Timestamp> = Vec::new();
        let from = self.local(until);
        let from = from.and_then(|at| at.checked_add(Span::new().hours(CLOCK_CHANGE_HOURS)).ok());
        let Some(mut from) = from else { return found };
        for _ in 0..MAX_STEPS {
            let Some(local) = previous_local(cron, from, false) else {
                break;
            };
            from = local;
            let Some(at) = self.moment(local) else { break };
            if at < not_before || found.len() == max {
                break;
            }
            // Several times that the clock skips are one moment.
            if at <= until && found.last() != Some(&at) {
                found.push(at);
            }
        }
        found.reverse();
        found
    }

    /// Whether the clock of the zone changes shortly before or after a moment.
    fn has_change_near(&self, at: Timestamp) -> bool {
        let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else {
            return false;
        };
        const NEAR_SECONDS: i64 = 26 * 3_600;
        let is_near =
            |change: jiff::Timestamp| (change.as_second() - at.as_second()).abs() <= NEAR_SECONDS;
        let before = self.zone.preceding(at).next();
        let after = self.zone.following(at).next();
        let mut changes = before.into_iter().chain(after);
        changes.any(|change| is_near(change.timestamp()))
    }
}
