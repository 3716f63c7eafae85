//! Storage promises as narrow traits, and the battery that holds every implementation to them.
//!
//! One [`Commit`] is one transaction: events at an expected position, timers, outbox, idempotency
//! record, definitions and projections together or not at all. The log is the truth; every other
//! table can be rebuilt from it. Nothing here knows what an event means, which protocol is spoken
//! or which database is used.
//!
//! Invariants every implementation keeps, tested by [`mod@battery`]:
//! - A commit that returned `Ok` survives the death of the process and of the machine.
//! - A commit that returned an error left no trace.
//! - Sequences of a stream start at 0 and have no gaps.
//! - A reader sees whole commits, in order, and never blocks a writer.

pub mod audit;
mod commit;
mod fault;
mod keys;
mod lane;
mod people;
mod read;
mod storage_usage;
mod webhooks;
mod work_failure;

pub mod battery;
pub mod memory;

pub use audit::{AuditDraft, AuditHead, AuditRow, Checkpoint};
pub use commit::{
    Append, Commit, CommitGuard, DefinitionRecord, IdempotencyRecord, InterruptRow, MAX_BODY_BYTES,
    MemoryJoin, MemoryRow, NewEvent, OutboxChange, OutboxEntry, RegistryChange, RunRow,
    SnapshotRecord, StoredResponse, TimerChange,
};
pub use fault::{Conflict, Error, Fault};
pub use keys::{KeyRecord, Keys};
pub use lane::{DueLane, Lane, LaneQuery, WorkClass};
pub use people::{DelegationRecord, GroupRecord, PeopleChange, ReadPeople};
pub use read::{
    DueTimer, IdempotencyKey, InboxChoices, InboxCursor, InboxPage, InboxQuery, InboxSort,
    InterruptFilter, InterruptListing, LeaseRequest, ListedRun, MemoryQuery, MemorySegment,
    MemoryView, Page, PageLimit, RegisteredWorkflow, RunFilter, RunListing, RunPosition,
    StoredEvent, StoredRun, StreamSlice,
};
pub use storage_usage::{
    RunCounts, RunSize, ScopeSize, StorageUsage, USAGE_MAX_RUNS, USAGE_MAX_WRITES, USAGE_TOP_COUNT,
    WorkflowSize,
};
pub use webhooks::{
    DELIVERY_LOG_LIMIT, DeliveryListing, DeliveryProgress, DeliveryRow, DeliveryState,
    ReadWebhooks, StoredWebhook, WebhookChange,
};
pub use work_failure::{ParkedWork, WorkFailure, WorkFailures};

use async_trait::async_trait;
use std::sync::Arc;
use tandem_record::{
    DefinitionHash, EffectId, InterruptId, Partition, RunId, Seq, StreamId, TenantId, Timestamp,
    WorkflowId, WorkspaceId,
};

/// Writes. The only way anything durable changes, apart from leases and keys.
#[async_trait]
pub trait Log: Send + Sync {
    /// Makes the commit durable, or says why not. Implementations group concurrent callers into
    /// one fsync. Returns only after the data would survive a power cut.
    async fn commit(&self, commit: Commit) -> Result<(), Error>;
}

/// Reads of streams. Never waits for a writer.
#[async_trait]
pub trait ReadLog: Send + Sync {
    /// Events with `seq > after` (all from the start when `None`), ascending, as far as the limit
    /// goes. The first one is given whatever its length, so a reader always gets on; who has
    /// reached the slice's head has read everything.
    async fn event_page(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<StreamSlice, Fault>;

    /// The same, at most `limit` events of any length.
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
}

/// Reads of the run projection.
#[async_trait]
pub trait ReadRuns: Send + Sync {
    /// One run bound to its tenant; a run of another tenant is `None`, exactly like no run.
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

    /// How many runs are in each status, over all tenants.
    async fn count_by_status(&self) -> Result<Vec<(String, u64)>, Fault>;
}

/// Reads of the inbox.
#[async_trait]
pub trait ReadInterrupts: Send + Sync {
    /// One question bound to its tenant, open or closed.
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

    /// Open questions in the order a person wants to read them. The cost follows the page,
    /// whatever is selected.
    async fn inbox(&self, tenant: &TenantId, query: &InboxQuery) -> Result<InboxPage, Fault>;

    /// The kinds of open questions and the groups they are put to.
    async fn inbox_choices(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<InboxChoices, Fault>;
}

/// Reads of the memory journal.
#[async_trait]
pub trait ReadMemory: Send + Sync {
    /// The place of the newest write; 0 when there is none. What a caller was audit is written is
    /// never beyond it.
    async fn memory_position(&self) -> Result<u64, Fault>;

    /// What a reader sees: the newest write of each key among those in its view, oldest first,
    /// keys taken out left out. Among runs of a view the newest write wins, as it does in the
    /// scope. Bound to the view's tenant and scope, whatever runs it names. The cost follows the
    /// entries of the scope and the writes of the runs named, whatever position is asked for.
    async fn memory_entries(
        &self,
        view: &MemoryView,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryRow>, Fault>;

    /// How many keys a scope has under a name at `now`, counted up to `limit`. The cost follows
    /// the keys there are, not those there were.
    async fn memory_count(
        &self,
        tenant: &TenantId,
        scope: &str,
        memory_ref: &str,
        now: Timestamp,
        limit: u64,
    ) -> Result<u64, Fault>;

    /// Keys under a name that begin with a prefix, never expire, are in the scope for everyone and
    /// were written within the view. How many, and the oldest `limit` writes; nothing unless
    /// there are more than `above`.
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

/// Workflow documents, content-addressed, and which version an id means now.
#[async_trait]
pub trait ReadDefinitions: Send + Sync {
    /// A document by content. Stays readable as long as a run pins it.
    async fn definition(&self, hash: &DefinitionHash) -> Result<Option<Arc<str>>, Fault>;

    /// What `workflow` means for `owner`: the document of its workspace, else its tenant's, else the
    /// shared one. Documents of workspaces mean nothing outside of them.
    async fn registered(
        &self,
        owner: &Partition,
        workflow: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault>;

    /// Every id that means something to `owner`, ascending, with what it means.
    async fn list_registered(&self, owner: &Partition) -> Result<Vec<RegisteredWorkflow>, Fault>;

    /// Documents of the tenant's workspaces, by workspace and id.
    async fn list_registered_in_workspaces(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<RegisteredWorkflow>, Fault>;
}

/// The audit log. Grown by commits, and by changes of keys; sealed by checkpoints. Nothing in it
/// is ever changed or removed, and an implementation refuses to.
#[async_trait]
pub trait Audit: Send + Sync {
    /// Where the chain ends, kept apart from the entries so that a lost end shows.
    async fn audit_head(&self) -> Result<Option<AuditHead>, Fault>;

    /// Entries with `seq > after`, ascending, at most `limit`, exactly as they are stored.
    async fn audit_entries(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, Fault>;

    /// The entry that tells how a question was decided.
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
    /// Timers due at or before `now`, earliest first; one that was put off is due at the time of its
    /// next attempt, one that is parked never. Reading does not claim them: firing twice is
    /// harmless, because the run's state decides what a firing means.
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Fault>;

    /// When the next timer is due, if there is one that is not parked.
    async fn next_timer(&self) -> Result<Option<Timestamp>, Fault>;
}

/// Leases on outbox entries. An entry is attempted only by the holder of its lease; the entry
/// leaves by a commit that names it done, so a holder that died is replaced and a holder that
/// lost its lease cannot remove what another performs.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Lanes in which an entry is due and unleased, or its lease ran out. The cost follows the tenants
    /// and targets looked at, not the entries that wait.
    async fn due_lanes(&self, query: LaneQuery) -> Result<Vec<DueLane>, Fault>;

    /// Takes due entries out of the lanes named, up to so many of each, earliest first, and leases
    /// them to the caller. Leases that ran out count once [`Self::due_lanes`] has found them.
    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault>;

    /// Gives an entry back after a failed attempt; it becomes due again at `available_at`.
    /// Ignored when the caller no longer holds the lease.
    async fn release(
        &self,
        effect: &EffectId,
        owner: &str,
        available_at: Timestamp,
    ) -> Result<(), Fault>;

    /// Drops every lease of other owners. Only for a process that knows it is alone on the store.
    async fn break_leases(&self, owner: &str) -> Result<u64, Fault>;

    /// When the next unleased entry is due, or the next lease runs out. Parked entries are never due.
    async fn next_due(&self) -> Result<Option<Timestamp>, Fault>;

    /// Entries waiting, for back-pressure and metrics.
    async fn depth(&self) -> Result<u64, Fault>;
}

/// Answers to earlier requests.
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

/// Maintenance: what may be forgotten, and whether the store works at all.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// A cheap write-and-read, for readiness.
    async fn ping(&self) -> Result<(), Fault>;

    /// Forgets answers older than `before`, oldest first, at most `limit`.
    async fn expire_idempotency(&self, before: Timestamp, limit: usize) -> Result<u64, Fault>;

    /// Runs that ended before `before` and still have their log, longest ended first, those that
    /// ended at one time in order of creation; from the one after the place given.
    async fn ended_runs(
        &self,
        after: Option<(Timestamp, RunPosition)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<ListedRun>, Fault>;

    /// Removes a run's log and its snapshot and leaves its row with `tombstone`. Its sequence
    /// stays taken, and what it wrote into memory stays. The audit log tells it in the same
    /// transaction. Repeated, or without such a run, it does nothing.
    async fn purge_run(
        &self,
        run: &RunId,
        tombstone: &str,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault>;

    /// What of a tenant takes how much room. The cost is bounded, whatever there is.
    async fn storage_usage(&self, tenant: &TenantId) -> Result<StorageUsage, Fault>;

    /// Finishes what was asked before, flushes what can be flushed and lets go of the store.
    /// Later calls get a fault with code `closed`.
    async fn close(&self);
}

/// Everything together, for the one place that wires a store to a runtime.
pub trait Store:
    Log
    + ReadLog
    + ReadRuns
    + ReadInterrupts
    + ReadMemory
    + ReadDefinitions
    + ReadTimers
    + Outbox
    + WorkFailures
    + ReadIdempotency
    + Audit
    + SettingsStore
    + Keys
    + ReadPeople
    + ReadWebhooks
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
        + Outbox
        + WorkFailures
        + ReadIdempotency
        + Audit
        + SettingsStore
        + Keys
        + ReadPeople
        + ReadWebhooks
        + Maintenance
{
}
