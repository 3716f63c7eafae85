//! The storage contract as narrow traits, and the battery that tests every implementation.
//!
//! One [`Commit`] is one transaction: events at an expected position, timers, outbox, idempotency
//! record, definitions and projections are written together or not at all. The log is the truth;
//! every other table can be rebuilt from it. This crate does not interpret events and does not
//! depend on a protocol or a database.
//!
//! Invariants of every implementation, tested by [`mod@battery`]:
//! - A commit that returned `Ok` survives a crash of the process and of the machine.
//! - A commit that returned an error changed nothing.
//! - Sequences of a stream start at 0 and have no gaps.
//! - A reader sees whole commits, in order, and never blocks a writer.

pub mod audit;
mod commit;
mod conversations;
mod epochs;
mod fault;
mod keys;
mod lane;
mod lease;
mod people;
mod read;
mod storage_usage;
mod test_records;
mod webhooks;
mod work_failure;

pub mod battery;
pub mod memory;

pub use audit::{AuditDraft, AuditHead, AuditRow, Checkpoint};
pub use commit::{
    Append, Commit, CommitGuard, Committed, DefinitionRecord, DocumentRecord, IdempotencyRecord,
    InterruptRow, MAX_BODY_BYTES, MemoryJoin, MemoryRow, NewEvent, OutboxChange, OutboxEntry,
    RegistryChange, RunRow, SnapshotRecord, StoredResponse, TimerChange,
};
pub use conversations::{
    AgentLogEvent, AgentLogPage, ChatUserFilter, ChatUserRow, ConversationChange, Desk,
    DeskSelection, EndedSession, EscalationAssignee, EscalationFilter, EscalationRow,
    LISTING_PAGE_BYTES, Listing, ListingPage, ProxyFilter, ProxyRow, ReadAgentLog, ReadChatUsers,
    ReadEscalations, ReadProxies, ReadSchedules, ReadSessions, SCANNED_ROWS, ScheduleFilter,
    ScheduleRecipientRow, ScheduleRow, ScheduleRunRow, SessionFilter, SessionRow, listing,
};
pub use epochs::{CachedData, ReadEpochs};
pub use fault::{Conflict, Error, Fault};
pub use keys::{ChooseKeys, KeyRecord, Keys, MAKER_REVOKED};
pub use lane::{DueLane, Lane, LaneQuery, WorkClass};
pub use lease::{ClaimTimers, Lease, LeaseId, LeaseRenewal, LeaseRequest, TaskLeases};
pub use people::{DelegationRecord, GroupRecord, PeopleChange, ReadPeople};
pub use read::{
    DueTimer, FoldStart, IdempotencyKey, InboxChoices, InboxCursor, InboxPage, InboxQuery,
    InboxSort, InterruptFilter, InterruptListing, ListedRun, MemoryQuery, MemorySegment,
    MemoryView, Page, PageLimit, QUESTION_PAGE_BYTES, RegisteredWorkflow, RunFilter, RunListing,
    RunPosition, SnapshotQuery, StoredEvent, StoredRun, StreamSlice, question_page,
};
pub use storage_usage::{
    RunCounts, RunSize, ScopeSize, StorageUsage, USAGE_MAX_RUNS, USAGE_MAX_WRITES, USAGE_TOP_COUNT,
    WorkflowSize,
};
pub use test_records::{TestRecord, TestRecordQuery, TestRecords};
pub use webhooks::{
    DELIVERY_LOG_LIMIT, DeliveryListing, DeliveryProgress, DeliveryRow, DeliveryState, FeedRow,
    ReadWebhooks, StoredWebhook, WebhookChange, WebhookFeed,
};
pub use work_failure::{ParkedWork, WorkFailure, WorkFailures};

use async_trait::async_trait;
use std::sync::Arc;
use tandem_record::{
    DefinitionHash, EffectId, InterruptId, Partition, RunId, Seq, SessionId, StreamId, TenantId,
    Timestamp, WorkflowId, WorkspaceId,
};

/// Writes. The only way to change durable data, apart from leases and revocations of keys.
#[async_trait]
pub trait Log: Send + Sync {
    /// Makes the commit durable, or returns why not. Implementations group concurrent callers into
    /// one fsync. Returns only when the data would survive a power failure.
    async fn commit(&self, commit: Commit) -> Result<Committed, Error>;
}

/// Reads of streams. Never waits for a writer.
#[async_trait]
pub trait ReadLog: Send + Sync {
    /// Events with `seq > after` (all from the start when `None`), ascending, up to the limit. The
    /// first one is returned whatever its length, so a reader always advances. A reader that has
    /// reached the slice's head has read everything.
    async fn event_page(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<StreamSlice, Fault>;

    /// The same with at most `limit` events of any length.
    async fn events(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: usize,
    ) -> Result<StreamSlice, Fault> {
        let limit = PageLimit::of_events(limit);
        self.event_page(stream, after, limit).await
    }

    /// The newest usable snapshot of a stream's folded state. A cache: `None` is always correct.
    async fn snapshot(&self, stream: &StreamId) -> Result<Option<SnapshotRecord>, Fault>;

    /// Everything a fold starts with: the snapshot, if it is wanted, and the first page of the events after
    /// it, or from the start. A store may read both at once.
    async fn fold_start(
        &self,
        stream: &StreamId,
        wanted: SnapshotQuery,
        limit: PageLimit,
    ) -> Result<FoldStart, Fault> {
        let snapshot = self.snapshot(stream).await?;
        let snapshot = snapshot.filter(|snapshot| wanted.admits(snapshot));
        let after = snapshot.as_ref().map(|snapshot| snapshot.seq);
        let slice = self.event_page(stream, after, limit).await?;
        Ok(FoldStart { snapshot, slice })
    }
}

/// Reads of the run projection.
#[async_trait]
pub trait ReadRuns: Send + Sync {
    /// One run of a tenant; a run of another tenant is `None`, exactly like no run.
    async fn run(&self, tenant: &TenantId, run: &RunId) -> Result<Option<StoredRun>, Fault>;

    /// The same without a tenant, for the host's own work (timers, effects, children).
    async fn run_of_any_tenant(&self, run: &RunId) -> Result<Option<StoredRun>, Fault>;

    /// Newest first.
    async fn list_runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<RunListing, Fault>;

    /// Where a run of the partition stands in listings; of any other partition it is `None`. A purged
    /// run keeps its place, so that a reader can go on from it.
    async fn run_position(&self, of: &Partition, run: &RunId)
    -> Result<Option<RunPosition>, Fault>;

    /// A live run of the partition with this scope, for duplicate suppression.
    async fn live_run_in_scope(
        &self,
        owner: &Partition,
        scope: &str,
    ) -> Result<Option<RunId>, Fault>;

    /// Number of runs below a run, at any depth; not more than `limit` are counted.
    async fn count_descendants(
        &self,
        tenant: &TenantId,
        run: &RunId,
        limit: u64,
    ) -> Result<u64, Fault>;

    /// Number of runs in each status, over all tenants.
    async fn count_by_status(&self) -> Result<Vec<(String, u64)>, Fault>;
}

/// Reads of the inbox.
#[async_trait]
pub trait ReadInterrupts: Send + Sync {
    /// One question of a tenant, open or closed.
    async fn interrupt(
        &self,
        tenant: &TenantId,
        interrupt: &InterruptId,
    ) -> Result<Option<InterruptRow>, Fault>;

    /// Where a question of the partition stands in listings; of any other partition it is `None`.
    async fn interrupt_position(
        &self,
        of: &Partition,
        interrupt: &InterruptId,
    ) -> Result<Option<RunPosition>, Fault>;

    /// Newest first. The cost follows the page, not the number of questions.
    async fn list_interrupts(
        &self,
        tenant: &TenantId,
        filter: &InterruptFilter,
        page: &Page,
    ) -> Result<InterruptListing, Fault>;

    /// Open questions in the requested order. The cost depends on the page size, whatever the
    /// filter.
    async fn inbox(&self, tenant: &TenantId, query: &InboxQuery) -> Result<InboxPage, Fault>;

    /// The kinds of open questions and the groups that may decide them.
    async fn inbox_choices(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<InboxChoices, Fault>;
}

/// Reads of the memory journal.
#[async_trait]
pub trait ReadMemory: Send + Sync {
    /// The position of the newest write; 0 when there is none. Every write that a caller saw
    /// confirmed is at or below it.
    async fn memory_position(&self) -> Result<u64, Fault>;

    /// What a reader sees: the newest write of each key among those in its view, oldest first,
    /// without deleted keys. Among runs of a view the newest write wins, as in the scope. Limited
    /// to the view's tenant and scope, whatever runs it names. The cost depends on the entries of
    /// the scope and the writes of the named runs, not on the position.
    async fn memory_entries(
        &self,
        view: &MemoryView,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryRow>, Fault>;

    /// Number of keys of a scope under a name at `now`, counted up to `limit`. The cost depends on
    /// the existing keys, not on deleted ones.
    async fn memory_count(
        &self,
        tenant: &TenantId,
        scope: &str,
        memory_ref: &str,
        now: Timestamp,
        limit: u64,
    ) -> Result<u64, Fault>;

    /// Keys under a name that begin with a prefix, never expire, are in the scope for everyone and
    /// were written within the view. Returns their number and the oldest `limit` writes; nothing
    /// unless there are more than `above`.
    async fn non_expiring_memory(
        &self,
        view: &MemoryView,
        memory_ref: &str,
        prefix: &str,
        above: u64,
        limit: usize,
    ) -> Result<(u64, Vec<MemoryRow>), Fault>;

    /// Children whose end a run saw, before one of its events if one is given, in that order.
    async fn memory_joins(&self, run: &RunId, below: Option<Seq>) -> Result<Vec<RunId>, Fault>;
}

/// Workflow documents, content-addressed, and the document each id stands for.
#[async_trait]
pub trait ReadDefinitions: Send + Sync {
    /// A document by content. Stays readable as long as a run pins it.
    async fn definition(&self, hash: &DefinitionHash) -> Result<Option<Arc<str>>, Fault>;

    /// The document `workflow` stands for in `owner`: that of its workspace, else its tenant's,
    /// else the shared one. Documents of a workspace are not visible outside it.
    async fn registered(
        &self,
        owner: &Partition,
        workflow: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault>;

    /// Every id registered for `owner`, ascending, with its document.
    async fn list_registered(&self, owner: &Partition) -> Result<Vec<RegisteredWorkflow>, Fault>;

    /// Documents of the tenant's workspaces, by workspace and id.
    async fn list_registered_in_workspaces(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<RegisteredWorkflow>, Fault>;
}

/// The audit log. Commits and changes of keys append to it; checkpoints seal it. Nothing in it is
/// ever changed or removed, and an implementation refuses to.
#[async_trait]
pub trait Audit: Send + Sync {
    /// The end of the chain, stored apart from the entries so that missing last entries are
    /// detected.
    async fn audit_head(&self) -> Result<Option<AuditHead>, Fault>;

    /// Entries with `seq > after`, ascending, at most `limit`, exactly as they are stored.
    async fn audit_entries(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, Fault>;

    /// The entry about the decision of a question.
    async fn audit_decision(&self, interrupt: &InterruptId) -> Result<Option<AuditRow>, Fault>;

    /// Checkpoints with `at_sequence > after`, ascending, at most `limit`.
    async fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Fault>;

    /// The last checkpoint with `at_sequence <= seq`.
    async fn checkpoint_until(&self, seq: u64) -> Result<Option<Checkpoint>, Fault>;

    /// Adds a checkpoint if the last one is at `after` (0 for none); `false` when it is not.
    async fn put_checkpoint(&self, checkpoint: Checkpoint, after: u64) -> Result<bool, Fault>;
}

/// Durable timers. Set and cleared by commits; read here.
#[async_trait]
pub trait ReadTimers: Send + Sync {
    /// Timers due at or before `now`, earliest first. A rescheduled timer is due at its next
    /// attempt; a parked one never. Reading does not claim them: firing twice is harmless, because
    /// the machine's state decides the effect of a firing.
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Fault>;

    /// When the next timer is due, if there is one that is not parked.
    async fn next_timer(&self) -> Result<Option<Timestamp>, Fault>;
}

/// Leases on outbox entries. An entry is attempted only by the holder of its lease, and is removed
/// by a commit that names it as done. So a crashed holder is replaced, and a holder that lost its
/// lease cannot remove an entry that another performs.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Lanes with an entry that is due and unleased, or whose lease expired. The cost depends on
    /// the tenants and targets read, not on the waiting entries.
    async fn due_lanes(&self, query: LaneQuery) -> Result<Vec<DueLane>, Fault>;

    /// Takes due entries from the named lanes, earliest first, up to the limit of each, and leases
    /// them to the caller. An entry with an order key waits until all before it are removed, and
    /// costs nothing while it waits. Expired leases count once [`Self::due_lanes`] has found them.
    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault>;

    /// Releases an entry after a failed attempt; it is due again at `available_at`. Ignored when
    /// the caller no longer holds the lease.
    async fn release(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        available_at: Timestamp,
    ) -> Result<(), Fault>;

    /// Extends leases that are still held, and returns the entries whose lease is not: removed,
    /// replaced, or taken by another. One write for all.
    async fn renew_leases(&self, renewal: LeaseRenewal) -> Result<Vec<EffectId>, Fault>;

    /// Removes every lease of other owners. Only for a process that is the only one on the store.
    async fn break_leases(&self, owner: &str) -> Result<u64, Fault>;

    /// When the next unleased entry is due, or the next lease expires. Parked entries are never
    /// due.
    async fn next_due(&self) -> Result<Option<Timestamp>, Fault>;

    /// Number of waiting entries, for back-pressure and metrics.
    async fn depth(&self) -> Result<u64, Fault>;
}

/// Responses to earlier requests.
#[async_trait]
pub trait ReadIdempotency: Send + Sync {
    async fn idempotency_record(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, Fault>;
}

/// Small host-wide settings that must survive a restart (signing keys, the test clock's offset).
#[async_trait]
pub trait SettingsStore: Send + Sync {
    async fn get(&self, name: &str) -> Result<Option<String>, Fault>;
    async fn set(&self, name: &str, value: &str) -> Result<(), Fault>;
    /// Writes only when absent; returns the value that is stored afterwards.
    async fn set_if_absent(&self, name: &str, value: &str) -> Result<String, Fault>;
}

/// Maintenance: expiry, purge, usage, and whether the store works at all.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// A cheap write and read, for readiness.
    async fn ping(&self) -> Result<(), Fault>;

    /// Deletes records older than `before`, oldest first, at most `limit`. Those of messages stay as
    /// long as their session.
    async fn expire_idempotency(&self, before: Timestamp, limit: usize) -> Result<u64, Fault>;

    /// Runs that ended before `before` and still have their log, earliest end first, with equal
    /// ends in order of creation; starts after the given position.
    async fn ended_runs(
        &self,
        after: Option<(Timestamp, RunPosition)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<ListedRun>, Fault>;

    /// Removes a run's log and its snapshot and leaves its row with `tombstone`. Its sequence is
    /// not reused, and its memory writes stay. The audit entry is written in the same transaction.
    /// Repeated, or without such a run, it does nothing.
    async fn purge_run(
        &self,
        run: &RunId,
        tombstone: &str,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault>;

    /// Sessions that ended before `before`, earliest end first, equal ends in order of their ids;
    /// starts after the given [`EndedSession::place`].
    async fn ended_sessions(
        &self,
        after: Option<(Timestamp, SessionId)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<EndedSession>, Fault>;

    /// Removes an ended session: its log and snapshot, its row, its escalations and questions, its
    /// events in the agent's log, and the ids of its messages. Its sequence and its positions are
    /// not reused. The audit entry is written in the same transaction. Repeated, without such a
    /// session, or while it is active, it does nothing.
    async fn purge_session(
        &self,
        session: &SessionId,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault>;

    /// Storage used by a tenant. The cost is bounded, whatever the amount.
    async fn storage_usage(&self, tenant: &TenantId) -> Result<StorageUsage, Fault>;

    /// Finishes earlier calls, flushes, and releases the store. Later calls get a fault with code
    /// `closed`.
    async fn close(&self);
}

/// All traits together, for the one place that connects a store to a runtime.
pub trait Store:
    Log
    + ReadLog
    + ReadRuns
    + ReadInterrupts
    + ReadMemory
    + ReadDefinitions
    + ReadTimers
    + ClaimTimers
    + Outbox
    + WorkFailures
    + ReadIdempotency
    + ReadEpochs
    + TaskLeases
    + Audit
    + SettingsStore
    + Keys
    + ReadPeople
    + ReadWebhooks
    + ReadChatUsers
    + ReadSessions
    + ReadEscalations
    + ReadProxies
    + ReadSchedules
    + ReadAgentLog
    + TestRecords
    + Maintenance
{
}

impl<T> Store for T where
    T: Log
        + ReadLog
        + ReadRuns
        + ReadInterrupts
        + ReadMemory
        + ReadDefinitions
        + ReadTimers
        + ClaimTimers
        + Outbox
        + WorkFailures
        + ReadIdempotency
        + ReadEpochs
        + TaskLeases
        + Audit
        + SettingsStore
        + Keys
        + ReadPeople
        + ReadWebhooks
        + ReadChatUsers
        + ReadSessions
        + ReadEscalations
        + ReadProxies
        + ReadSchedules
        + ReadAgentLog
        + TestRecords
        + Maintenance
{
}
