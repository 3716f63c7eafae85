//! Times in requests.

use crate::error::AppError;
use tandem_record::Timestamp;

/// The time in a field of a request; `place` names the field.
pub(crate) fn parse_time(place: &str, text: &str) -> Result<Timestamp, AppError> {
    let parsed = text.parse::<jiff::Timestamp>();
    let at = parsed.map_err(|_| AppError::invalid(place, "must be an RFC 3339 time"))?;
    Ok(Timestamp(at.as_millisecond()))
}
