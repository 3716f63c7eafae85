use tandem_record::Timestamp;

pub fn rfc3339(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    format!("{instant:.3}")
}
