//! Errors of storage. A conflict is an ordinary result: the caller reloads and retries. A fault is
//! an error of the store itself and says whether a retry can help.

use tandem_record::{EffectId, Seq, StreamId};

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error(transparent)]
    Conflict(#[from] Conflict),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Another commit was first. Nothing was written.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
pub enum Conflict {
    #[error("stream {stream} is at {actual:?}, not at {expected:?}")]
    Position {
        stream: StreamId,
        /// The last sequence the caller expected; `None` for a new stream.
        expected: Option<Seq>,
        actual: Option<Seq>,
    },
    /// Another commit used the idempotency key in the meantime.
    #[error("the idempotency key has been used")]
    KeyUsed,
    /// Memory entries that the commit needs no longer exist.
    #[error("entries of memory are gone")]
    MemoryKeysMissing,
    /// The caller does not hold the lease of this outbox entry, or not any more.
    #[error("the lease of effect {0} is lost")]
    LeaseLost(EffectId),
    /// A guard on a scope, a webhook or the registry failed.
    #[error("guard failed: {0}")]
    Guard(String),
}

/// An error of the store itself.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
#[error("{message}")]
pub struct Fault {
    pub message: String,
    /// Whether the same call may succeed later without intervention.
    pub retryable: bool,
    /// Kind of error, for error codes: `disk_full`, `corrupt`, `closed`, `newer_schema`, `locked`
    /// (another process has the store), `busy`, `io`, `too_large` (the data never fits), `purged` (the
    /// stream's log was removed), and `invalid` for calls that no correct caller makes.
    pub code: &'static str,
}

impl Fault {
    pub fn retryable(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retryable: true,
            code,
        }
    }

    /// Whether the store as a whole fails, so that the failed work is not the cause.
    pub fn is_store_wide(&self) -> bool {
        self.retryable && matches!(self.code, "disk_full" | "busy" | "io" | "locked")
            || self.code == "closed"
    }

    /// The refusal of events for a stream whose log was removed.
    pub fn purged(stream: &StreamId) -> Self {
        Self::permanent("purged", format!("the log of stream {stream} was purged"))
    }

    pub fn permanent(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retryable: false,
            code,
        }
    }
}
