//! Parameters and results of reads.

use crate::audit::Hash;
use crate::commit::{InterruptRow, RunRow, SnapshotRecord};
use std::sync::Arc;
use tandem_record::{
    AgentId, DefinitionHash, EffectId, MessageId, Partition, ProxyId, RunId, RunStatus, Seq,
    StreamId, TenantId, TimerName, Timestamp, WorkflowId, WorkspaceId,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    pub seq: Seq,
    pub at: Timestamp,
    pub body: String,
}

/// How much of a stream is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    pub events: usize,
    /// Limit of body bytes, unless the first body alone is larger.
    pub bytes: usize,
}

impl PageLimit {
    pub const fn of_events(events: usize) -> Self {
        Self {
            events,
            bytes: usize::MAX,
        }
    }

    /// Whether another event fits after this many events and bytes.
    pub fn admits(self, events: usize, bytes: usize, another: usize) -> bool {
        let fits = events == 0 || bytes.saturating_add(another) <= self.bytes;
        events < self.events && fits
    }
}

/// Part of a stream, and the end of the stream when it was read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StreamSlice {
    pub events: Vec<StoredEvent>,
    /// `None` when the stream does not exist.
    pub head: Option<Seq>,
}

/// Which snapshot a reader can use.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotQuery {
    pub format: u32,
    /// The state as of this event or earlier; of any event when `None`.
    pub up_to: Option<Seq>,
}

impl SnapshotQuery {
    pub fn admits(self, snapshot: &SnapshotRecord) -> bool {
        let in_time = self.up_to.is_none_or(|last| snapshot.seq <= last);
        snapshot.format == self.format && in_time
    }
}

/// What a fold of a stream starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldStart {
    pub snapshot: Option<SnapshotRecord>,
    /// The events after the snapshot, or from the start.
    pub slice: StreamSlice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    pub row: RunRow,
    pub head: Seq,
    /// What remains of a purged run.
    pub tombstone: Option<String>,
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub workflow: Option<WorkflowId>,
    pub parent: Option<RunId>,
    pub workspace: Option<WorkspaceId>,
}

/// Position in the listing: creation order, assigned by the store, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPosition(pub i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Rows strictly older than this position.
    pub before: Option<RunPosition>,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    pub position: RunPosition,
    pub row: RunRow,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunListing {
    pub runs: Vec<ListedRun>,
    /// Whether older rows match.
    pub more: bool,
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptFilter {
    pub open: Option<bool>,
    pub kind: Option<String>,
    pub stream: Option<StreamId>,
    pub workspace: Option<WorkspaceId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptListing {
    /// Newest first, each with its position.
    pub rows: Vec<(RunPosition, InterruptRow)>,
    pub more: bool,
}

/// Limit of the texts in one page of questions. The first row is returned whatever its length.
pub const QUESTION_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The rows of one page of questions, and whether more follow. Rows beyond it are not kept.
pub fn question_page<P, E>(
    rows: impl Iterator<Item = Result<(P, InterruptRow), E>>,
    limit: usize,
) -> Result<(Vec<(P, InterruptRow)>, bool), E> {
    let mut page: Vec<(P, InterruptRow)> = Vec::new();
    let mut bytes = 0;
    for row in rows {
        let row = row?;
        bytes += row.1.body.len();
        let is_full = !page.is_empty() && bytes > QUESTION_PAGE_BYTES;
        if page.len() == limit || is_full {
            return Ok((page, true));
        }
        page.push(row);
    }
    Ok((page, false))
}

/// Order of open questions in the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InboxSort {
    #[default]
    Newest,
    /// Nearest deadline first; those without one last, oldest first.
    Deadline,
    /// Most urgent first; equal ones oldest first.
    Priority,
}

/// Where a page of the inbox ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxCursor {
    pub rank: i64,
    pub position: RunPosition,
}

/// A query for open questions. All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxQuery {
    pub workspace: Option<WorkspaceId>,
    pub kind: Option<String>,
    pub group: Option<String>,
    pub sort: InboxSort,
    pub after: Option<InboxCursor>,
    pub limit: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxPage {
    pub rows: Vec<(InboxCursor, InterruptRow)>,
    pub more: bool,
}

/// Values by which open questions can be filtered; names ascending, a bounded number of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxChoices {
    pub kinds: Vec<String>,
    pub groups: Vec<String>,
}

/// The document a workflow id stands for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredWorkflow {
    pub workflow: WorkflowId,
    pub hash: DefinitionHash,
    pub document: Arc<str>,
    /// Not of one tenant: loaded by the operator for everyone.
    pub shared: bool,
    /// The workspace it belongs to; `None` for documents of a whole tenant, and shared ones.
    pub workspace: Option<WorkspaceId>,
    pub registered_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimer {
    pub stream: StreamId,
    pub name: TimerName,
    pub due: Timestamp,
    /// Until then it belongs to who claimed it; `None` if it was only read.
    pub claimed_until: Option<Timestamp>,
    /// Failed attempts since it was set.
    pub failures: u32,
}

impl DueTimer {
    /// The due time of its row, by which the row is recognized as unchanged.
    pub fn stored_due(&self) -> Timestamp {
        self.claimed_until.unwrap_or(self.due)
    }
}

/// Names one request of one tenant to one operation. The caller's key is stored hashed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(pub String);

impl IdempotencyKey {
    /// Names one message that a transport delivers to an agent, for a tenant or one of its workspaces.
    /// No request has such a key: those are plain hashes.
    pub fn of_message(
        of: &Partition,
        agent: &AgentId,
        transport: &str,
        message: &MessageId,
    ) -> Self {
        let workspace = of.workspace.iter().map(WorkspaceId::as_str);
        let parts = [
            of.tenant.as_str(),
            agent.as_str(),
            transport,
            message.as_str(),
        ];
        // The lengths, and the number of parts, ensure that no two messages have the same encoding.
        let encoded: String = parts
            .into_iter()
            .chain(workspace)
            .map(|part| format!("{}:{part}", part.len()))
            .collect();
        Self(format!("message-{}", Hash::of(encoded.as_bytes())))
    }

    /// Names one text that an admin writes for a bridge, however it arrives.
    pub fn of_proxy_input(tenant: &TenantId, proxy: &ProxyId, input: &MessageId) -> Self {
        let parts = [tenant.as_str(), proxy.as_str(), input.as_str()];
        let encoded: String = parts
            .into_iter()
            .map(|part| format!("{}:{part}", part.len()))
            .collect();
        Self(format!("proxy-{}", Hash::of(encoded.as_bytes())))
    }

    /// Names what one effect of a conversation does. The effect may be attempted again.
    pub fn of_effect(tenant: &TenantId, effect: &EffectId) -> Self {
        let encoded = format!("{}:{tenant}{effect}", tenant.as_str().len());
        Self(format!("effect-{}", Hash::of(encoded.as_bytes())))
    }
}

/// Whose writes a reader sees: a scope as of one position of the journal, and later writes of some
/// runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryView {
    pub tenant: TenantId,
    pub scope: String,
    /// Position of the journal up to which everything is visible.
    pub start: u64,
    pub segments: Vec<MemorySegment>,
}

/// Writes of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySegment {
    pub run: RunId,
    /// Only writes recorded before this event.
    pub below: Option<Seq>,
    /// Whether keys it deleted are invisible to the reader. A run still sees keys it deleted
    /// itself.
    pub applies_deletions: bool,
}

impl MemoryView {
    /// Whether a write of a run at a position of the journal is visible.
    pub fn includes(&self, position: u64, run: &RunId, seq: Seq) -> bool {
        let in_segment = |segment: &MemorySegment| {
            segment.run == *run && segment.below.is_none_or(|below| seq < below)
        };
        position <= self.start || self.segments.iter().any(in_segment)
    }
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryQuery {
    pub memory_ref: Option<String>,
    pub key: Option<String>,
}
