//! Options for an operator. The defaults keep an idle process small: memory maps count as resident
//! and are not used, and page caches are bounded.

#[derive(Clone, Debug)]
pub struct Options {
    /// Number of read-only connections, and so of concurrent reads.
    pub readers: usize,
    /// Limit of the size of the database file (not of its WAL). A commit that would exceed it gets
    /// the retryable fault `disk_full`.
    pub max_bytes: Option<u64>,
    /// Files up to this size are checked for damage when opened. Larger ones would delay the start;
    /// their damage is found when it is read.
    pub check_up_to_bytes: u64,
    pub writer_cache_kib: u32,
    /// Per reader.
    pub reader_cache_kib: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 4,
            max_bytes: None,
            check_up_to_bytes: 64 * 1024 * 1024,
            writer_cache_kib: 16 * 1024,
            reader_cache_kib: 2 * 1024,
        }
    }
}
