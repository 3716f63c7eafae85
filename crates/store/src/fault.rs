//! How storage says no. A conflict is an ordinary answer that tells the caller to look again; a
//! fault is the store's own trouble and says whether trying again can help.

use tandem_record::{Seq, StreamId};

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error(transparent)]
    Conflict(#[from] Conflict),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Somebody else moved first. Nothing was written.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
pub enum Conflict {
    #[error("stream {stream} is at {actual:?}, not at {expected:?}")]
    Position {
        stream: StreamId,
        /// The last sequence the caller believed in; `None` for a stream not yet begun.
        expected: Option<Seq>,
        actual: Option<Seq>,
    },
    /// The idempotency key was answered by another commit in the meantime.
    #[error("the idempotency key has been used")]
    KeyUsed,
    /// Entries of memory the commit is about are not there any more.
    #[error("entries of memory are gone")]
    MemoryKeysMissing,
    /// A guard on the outbox, the scope or the registry did not hold.
    #[error("guard failed: {0}")]
    Guard(String),
}

/// Trouble of the store itself.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
#[error("{message}")]
pub struct Fault {
    pub message: String,
    /// Whether the same call may succeed later without anyone stepping in.
    pub retryable: bool,
    /// What kind of trouble, for error codes: `disk_full`, `corrupt`, `closed`, `newer_schema`,
    /// `locked` (another process has the store), `busy`, `io`, `too_large` (what was to be written
    /// never fits), and `invalid` for what no correct
    /// caller asks for.
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

    /// Whether the store as a whole is in trouble, so that what failed is not to blame for it.
    pub fn is_store_wide(&self) -> bool {
        self.retryable && matches!(self.code, "disk_full" | "busy" | "io" | "locked")
            || self.code == "closed"
    }

    pub fn permanent(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retryable: false,
            code,
        }
    }
}
