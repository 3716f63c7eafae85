//! Reproducible randomness from a seed: SHA-256 over the seed and a counter. Part of the determinism
//! version: a change here changes what a replayed flow sees.

use sha2::{Digest, Sha256};

#[derive(Debug)]
pub(crate) struct SeededRandom {
    seed: Vec<u8>,
    counter: u64,
    block: [u8; 32],
    used: usize,
}

impl SeededRandom {
    pub(crate) fn new(seed: &[u8]) -> Self {
        Self {
            seed: seed.to_vec(),
            counter: 0,
            block: [0; 32],
            used: 32,
        }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        if self.used == self.block.len() {
            let hash = Sha256::new()
                .chain_update(&self.seed)
                .chain_update(self.counter.to_be_bytes())
                .finalize();
            self.block.copy_from_slice(&hash);
            self.counter += 1;
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// In `0.0..1.0`, with 53 bits.
    pub(crate) fn number(&mut self) -> f64 {
        let bits = u64::from_be_bytes(self.bytes()) >> 11;
        bits as f64 / (1u64 << 53) as f64
    }

    /// A version 4 UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let mut bytes: [u8; 16] = self.bytes();
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}
