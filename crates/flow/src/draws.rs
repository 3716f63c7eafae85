//! Reproducible randomness of a run. A change here changes what a flow sees that is run again.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Every draw is the hash of the run's seed and the number of the draw.
#[derive(Debug)]
pub(crate) struct Draws {
    seed: u64,
    count: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, count: 0 }
    }

    fn next<const N: usize>(&mut self) -> [u8; N] {
        let hash = Sha256::new()
            .chain_update(b"tandem:rust-flow:v1\0")
            .chain_update(self.seed.to_be_bytes())
            .chain_update(self.count.to_be_bytes())
            .finalize();
        self.count += 1;
        std::array::from_fn(|at| hash[at])
    }

    /// In `0.0..1.0`, with 53 bits.
    pub(crate) fn number(&mut self) -> f64 {
        let bits = u64::from_be_bytes(self.next()) >> 11;
        bits as f64 / (1u64 << 53) as f64
    }

    /// Version 4.
    pub(crate) fn uuid(&mut self) -> Uuid {
        uuid::Builder::from_random_bytes(self.next()).into_uuid()
    }
}
