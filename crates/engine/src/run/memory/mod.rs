//! Memory: what a run reads from its scope, and what its nodes write and delete.
//!
//! Owns no folded state: memory is a journal, and the events of this run are a part of it. Owns
//! where a decision reads ([`MemoryDraft`]).
//!
//! Invariants:
//! - A decision reads memory only as far as it was looked up; otherwise it stops with a need.
//! - `MemoryWritten` is drafted in one place, `DecisionDraft::write_memory`.

mod compact;
mod draft;
mod iteration_view;
mod lookup;
mod perform;
mod read;
mod write;

pub use compact::compaction_batch_size;
pub(in crate::run) use draft::MemoryDraft;
pub(in crate::run) use iteration_view::has_stateful_loop;
pub use lookup::{Memory, MemoryNeed, MemoryQueryKind, MemoryRead, MemoryResult, SIBLING_WRITES};
pub use write::MAX_ENTRY_BYTES;
pub(crate) use write::NewMemoryEntry;
