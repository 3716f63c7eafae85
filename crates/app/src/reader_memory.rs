//! Room in memory for what readers were sent and have not taken yet. One budget for every entry point;
//! tenants share it (see [`FairShares`]).

use crate::fair_shares::FairShares;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that wait for their readers.
const MAX_UNSENT_BYTES: usize = 256 * 1024 * 1024;
const MAX_UNSENT_BYTES_OF_TENANT: usize = 64 * 1024 * 1024;
/// Up to this size a page is not counted.
pub const SMALL_PAGE_BYTES: usize = 64 * 1024;
/// How long a reader waits for room.
pub const MAX_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn reader_memory() -> Arc<FairShares> {
    FairShares::new(MAX_UNSENT_BYTES, MAX_UNSENT_BYTES_OF_TENANT)
}
