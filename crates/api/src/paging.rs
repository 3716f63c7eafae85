//! Pages of listings: how many rows, and where the last page ended. A cursor names the last item shown;
//! the store knows its place in the order of creation. So pages neither repeat nor skip a row while
//! others are created, and a cursor tells nothing about the rows of others: places are counted over
//! all tenants.

use crate::params::Params;
use crate::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;
/// Begins every cursor.
const PREFIX: char = 'c';

/// The number of rows a caller asks for with `limit`.
pub(crate) fn limit(params: &Params) -> Result<usize, Problem> {
    let limit = params.number("limit", 1..=MAX_LIMIT)?;
    Ok(usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX))
}

/// The cursor of a page that ends with the item of this id.
pub(crate) fn cursor(last: &str) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(last))
}

/// The id of the item a page ended with.
pub(crate) fn parse_cursor(cursor: &str) -> Result<String, Problem> {
    let encoded = cursor.strip_prefix(PREFIX);
    let bytes = encoded.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let id = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    id.ok_or_else(unknown_cursor)
}

/// A cursor that is malformed, or names nothing the caller may see.
pub(crate) fn unknown_cursor() -> Problem {
    Problem::invalid("cursor", "is not one this host gave out")
}
