//! Run ids in the format of the real ones, the same for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};
use tandem_record::RunId;
use tandem_runtime::Ids;

pub struct SimIds {
    seed: u64,
    next: AtomicU64,
}

impl SimIds {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            next: AtomicU64::new(0),
        }
    }
}

impl Ids for SimIds {
    fn run_id(&self) -> RunId {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        // Different from the thirteenth character on: children share that prefix with their parent.
        let (high, low) = (n >> 16, n & 0xffff);
        let seed = self.seed & 0xffff_ffff_ffff;
        RunId::from(format!("run-{high:08x}-{low:04x}-7000-8000-{seed:012x}"))
    }
}
