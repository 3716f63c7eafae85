//! Limits of one call, and of the parts of a pack.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct PackLimits {
    /// Linear memory of an instance.
    pub memory_bytes: usize,
    /// Work of one call, in the interpreter's own unit; the same on every machine.
    pub fuel: u64,
    /// Wall time of a call.
    pub time: Duration,
    pub request_bytes: usize,
    pub response_bytes: usize,
    pub module_bytes: usize,
    /// Of the manifest and of each schema.
    pub text_bytes: usize,
    /// Lines a call may log; further ones are dropped.
    pub log_lines: usize,
    /// Longer lines are cut.
    pub log_line_bytes: usize,
}

impl Default for PackLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            fuel: 2_000_000_000,
            time: Duration::from_secs(10),
            request_bytes: 1 << 20,
            response_bytes: 1 << 20,
            module_bytes: 8 << 20,
            text_bytes: 256 << 10,
            log_lines: 32,
            log_line_bytes: 1024,
        }
    }
}
