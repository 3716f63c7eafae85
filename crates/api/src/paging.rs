//! Pages of listings: the number of rows, and the cursor. A cursor is a position in creation order,
//! so pages neither repeat nor skip a row while others are created.

use crate::params::Params;
use crate::problem::Problem;
use tandem_runtime::{Page, RunPosition};

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

/// The page requested with `limit` and `cursor`.
pub(crate) fn page(params: &Params) -> Result<Page, Problem> {
    let limit = params.number("limit", 1..=MAX_LIMIT)?;
    Ok(Page {
        before: params.get("cursor").map(position).transpose()?,
        limit: usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX),
    })
}

pub(crate) fn cursor(position: RunPosition) -> String {
    format!("r{}", position.0)
}

pub(crate) fn position(cursor: &str) -> Result<RunPosition, Problem> {
    let number = cursor.strip_prefix('r').and_then(|text| text.parse().ok());
    number
        .map(RunPosition)
        .ok_or_else(|| Problem::invalid("cursor", "is not one this host gave out"))
}
