//! Times on the wire: RFC 3339 in UTC with milliseconds.

use tandem_record::Timestamp;

pub fn rfc3339(at: Timestamp) -> String {
    at.rfc3339()
}

/// Parses a time sent by a client.
pub fn parse(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_milliseconds_and_utc_suffix() {
        assert_eq!(
            rfc3339(Timestamp(1_767_225_600_120)),
            "2026-01-01T00:00:00.120Z"
        );
        for ms in (-62_135_596_800_000..253_402_300_799_999).step_by(7_777_777_777_777) {
            let known = jiff::Timestamp::from_millisecond(ms).expect("in range");
            assert_eq!(rfc3339(Timestamp(ms)), format!("{known:.3}"), "{ms}");
        }
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            parse("2026-01-01T00:00:00.120Z"),
            Some(Timestamp(1_767_225_600_120))
        );
        assert_eq!(parse("yesterday"), None);
    }
}
