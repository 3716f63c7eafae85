//! Moments of a wall clock. Zones come from the database in the binary, never from the machine, so that every process
//! reads the same times.
//!
//! A local time that a change of the clock skips is the moment of the change; of one that it repeats, the first counts.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use tandem_record::Timestamp;

/// The zone of this name, such as `Europe/Berlin`.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// Reads a moment of ISO 8601; without an offset it is of the clock of a zone.
pub(crate) fn read_moment(text: &str, timezone: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp(at.as_millisecond()));
    }
    let local = text.parse::<DateTime>().ok()?;
    let at = moment_of(&zone(timezone)?, local)?;
    Some(Timestamp(at.as_millisecond()))
}

/// `None` beyond the end of the calendar.
pub(crate) fn moment_of(zone: &TimeZone, local: DateTime) -> Option<jiff::Timestamp> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(local).ok()
        }
        AmbiguousOffset::Gap { after, .. } => {
            let before_the_change = after.to_timestamp(local).ok()?;
            let mut changes = zone.following(before_the_change);
            changes.next().map(|change| change.timestamp())
        }
    }
}
