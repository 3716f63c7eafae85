//! Local time of the agent's zone, for `Date`. Milliseconds in, milliseconds out.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// The zone's offset at an instant. Instants that jiff cannot represent count as UTC.
pub(crate) fn offset_ms(zone: &TimeZone, instant_ms: f64) -> f64 {
    let Ok(instant) = Timestamp::from_millisecond(instant_ms as i64) else {
        return 0.0;
    };
    f64::from(zone.to_offset(instant).seconds()) * 1_000.0
}

/// The instant at which the zone's clocks show `local_ms`. In a gap it is the instant after it, of two
/// it is the first.
pub(crate) fn instant_of_local(zone: &TimeZone, local_ms: f64) -> f64 {
    let Ok(local) = Timestamp::from_millisecond(local_ms as i64) else {
        return local_ms;
    };
    let civil: DateTime = Offset::UTC.to_datetime(local);
    match zone.to_ambiguous_timestamp(civil).compatible() {
        Ok(instant) => instant.as_millisecond() as f64,
        Err(_) => local_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_follows_daylight_saving() {
        let zone = TimeZone::get("Europe/Berlin").expect("a known zone");
        // 2026-07-01T12:00:00Z and 2026-01-01T12:00:00Z.
        assert_eq!(offset_ms(&zone, 1_782_907_200_000.0), 7_200_000.0);
        assert_eq!(offset_ms(&zone, 1_767_268_800_000.0), 3_600_000.0);
        assert_eq!(
            instant_of_local(&zone, 1_767_272_400_000.0),
            1_767_268_800_000.0
        );
    }
}
