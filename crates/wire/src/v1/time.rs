//! Times on the wire: RFC 3339 in UTC with milliseconds.

use tandem_record::Timestamp;

pub fn rfc3339(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

/// Reads what a client sends.
pub fn parse(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_and_zulu() {
        assert_eq!(
            rfc3339(Timestamp(1_767_225_600_120)),
            "2026-01-01T00:00:00.120Z"
        );
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            parse("2026-01-01T00:00:00.120Z"),
            Some(Timestamp(1_767_225_600_120))
        );
        assert_eq!(parse("yesterday"), None);
    }
}
