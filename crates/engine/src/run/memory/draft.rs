//! Where a decision reads memory.

use tandem_record::Seq;

pub(in crate::run) struct MemoryDraft {
    /// Nodes at which a replay reads memory, and the event before which it reads.
    pub(super) replay_reads: Vec<(usize, Seq)>,
    /// The event before which the node being started reads memory.
    pub(super) read_at: Seq,
    /// The start of the supervisor iteration that the node belongs to, if it belongs to one.
    pub(super) iteration_view: Option<Seq>,
}

impl MemoryDraft {
    pub(in crate::run) fn new() -> Self {
        Self {
            replay_reads: Vec::new(),
            read_at: Seq(0),
            iteration_view: None,
        }
    }
}
