//! The data, and how one commit changes it: validated as a whole, then applied without failing.

use super::audit::AuditLog;
use super::by_creation::ByCreation;
use super::conversations::Conversations;
use super::timers::{StoredTimer, TimerPlace};
use super::webhooks::{Feed, Subscription};
use crate::commit::{
    Append, Commit, CommitGuard, Committed, DefinitionRecord, IdempotencyRecord, InterruptRow,
    MemoryJoin, MemoryRow, NewEvent, OutboxEntry, RegistryChange, RunRow, SnapshotRecord,
};
use crate::epochs::CachedData;
use crate::fault::{Conflict, Error, Fault};
use crate::keys::KeyRecord;
use crate::people::{DelegationRecord, GroupRecord};
use crate::read::IdempotencyKey;
use crate::test_records::TestRecord;
use crate::work_failure::WorkFailure;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tandem_record::{
    DefinitionHash, EffectId, InterruptId, OrderKey, Partition, RunId, Seq, StreamId, TenantId,
    TimerName, Timestamp, WebhookId, WorkflowId,
};

#[derive(Default)]
pub(super) struct State {
    pub(super) streams: HashMap<StreamId, StreamLog>,
    /// In order of creation; a run's position is its index.
    pub(super) runs: Vec<RunRow>,
    pub(super) run_places: HashMap<RunId, usize>,
    pub(super) interrupts: ByCreation<InterruptId, InterruptRow>,
    /// In order of writing; a write's position is its index.
    pub(super) journal: Vec<MemoryRow>,
    pub(super) joins: Vec<MemoryJoin>,
    pub(super) tombstones: HashMap<RunId, String>,
    pub(super) timers: BTreeMap<TimerPlace, StoredTimer>,
    /// The same timers by due time, without parked ones.
    pub(super) due: BTreeSet<(Timestamp, StreamId, TimerName)>,
    /// Timers that failed.
    pub(super) failed_timers: BTreeMap<TimerPlace, WorkFailure>,
    pub(super) outbox: BTreeMap<EffectId, OutboxEntry>,
    /// Entries with an order key, in the order they were put.
    pub(super) ordered: BTreeMap<(TenantId, OrderKey), VecDeque<EffectId>>,
    /// Entries that failed; the entries contain their failure counts too.
    pub(super) failed_effects: BTreeMap<EffectId, WorkFailure>,
    /// Holders of tasks, and until when.
    pub(super) task_leases: BTreeMap<String, (String, Timestamp)>,
    /// By number of the kind of data.
    pub(super) epochs: BTreeMap<i64, u64>,
    pub(super) idempotency: BTreeMap<IdempotencyKey, IdempotencyRecord>,
    pub(super) documents: HashMap<DefinitionHash, Arc<str>>,
    pub(super) registry: BTreeMap<(Option<Partition>, WorkflowId), (DefinitionHash, Timestamp)>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) keys: BTreeMap<String, KeyRecord>,
    pub(super) audit: AuditLog,
    pub(super) groups: BTreeMap<(TenantId, String), GroupRecord>,
    pub(super) delegations: BTreeMap<(TenantId, String), DelegationRecord>,
    pub(super) webhooks: BTreeMap<WebhookId, Subscription>,
    pub(super) feeds: BTreeMap<TenantId, Feed>,
    pub(super) conversations: Conversations,
    /// In order; a record's position is its index plus one.
    pub(super) test_records: Vec<TestRecord>,
}

#[derive(Default)]
pub(super) struct StreamLog {
    pub(super) events: Vec<NewEvent>,
    pub(super) snapshot: Option<SnapshotRecord>,
    /// The log was purged; this was its last event.
    pub(super) purged_head: Option<Seq>,
}

impl StreamLog {
    pub(super) fn head(&self) -> Option<Seq> {
        let last = self.events.len().checked_sub(1);
        last.map(|last| Seq(last as u64)).or(self.purged_head)
    }

    pub(super) fn purge(&mut self) {
        self.purged_head = self.head();
        self.events.clear();
        self.snapshot = None;
    }
}

impl State {
    pub(super) fn validate(&self, commit: &Commit) -> Result<(), Error> {
        for guard in &commit.guards {
            self.check_guard(guard)?;
        }
        let mut records = commit.idempotency.iter();
        if records.any(|record| self.idempotency.contains_key(&record.key)) {
            return Err(Conflict::KeyUsed.into());
        }
        if let Some(key) = &commit.key {
            self.check_key(key)?;
        }
        // A later append of the same commit builds on the earlier one.
        let mut heads: HashMap<&StreamId, Option<Seq>> = HashMap::new();
        for append in &commit.appends {
            let head = heads
                .entry(&append.stream)
                .or_insert_with(|| self.streams.get(&append.stream).and_then(StreamLog::head));
            if *head != append.after {
                return Err(Conflict::Position {
                    stream: append.stream.clone(),
                    expected: append.after,
                    actual: *head,
                }
                .into());
            }
            let log = self.streams.get(&append.stream);
            if log.is_some_and(|log| log.purged_head.is_some()) && !append.events.is_empty() {
                return Err(Fault::purged(&append.stream).into());
            }
            let length = head.map_or(0, |seq| seq.next().0) + append.events.len() as u64;
            *head = length.checked_sub(1).map(Seq);
        }
        Ok(())
    }

    fn check_key(&self, key: &KeyRecord) -> Result<(), Fault> {
        let mut others = self
            .keys
            .values()
            .filter(|other| other.key_id != key.key_id);
        if let Some(duplicate) = others.find(|other| other.hash == key.hash) {
            return Err(key.duplicates(&duplicate.key_id));
        }
        let maker = key.made_by.as_ref().and_then(|maker| self.keys.get(maker));
        match maker.is_some_and(|maker| maker.revoked_at.is_some()) {
            true => Err(key.maker_is_revoked()),
            false => Ok(()),
        }
    }

    fn check_guard(&self, guard: &CommitGuard) -> Result<(), Conflict> {
        match guard {
            CommitGuard::HoldsLease { effect, lease } => {
                let held = self.outbox.get(effect).and_then(|e| e.lease.as_ref());
                if held.is_none_or(|held| held.id != *lease) {
                    return Err(Conflict::LeaseLost(effect.clone()));
                }
            }
            CommitGuard::ScopeFree { owner, scope } => {
                if let Some(run) = self.live_in_scope(owner, scope) {
                    return Err(Conflict::Guard(format!(
                        "scope {scope} is taken by run {}",
                        run.run_id
                    )));
                }
            }
            CommitGuard::NoDeliveryBefore { webhook, due } => {
                let next = self.webhooks.get(webhook).and_then(Subscription::next);
                if next.is_some_and(|next| due.is_none_or(|due| next < due)) {
                    let message = format!("webhook {webhook} has a delivery to make");
                    return Err(Conflict::Guard(message));
                }
            }
            CommitGuard::FeedEndsAt { tenant, position } => {
                if self.feed_head(tenant) != *position {
                    let message = format!("events of tenant {tenant} wait in its feed");
                    return Err(Conflict::Guard(message));
                }
            }
            CommitGuard::WebhookUnchanged { webhook, body } => {
                let found = self.webhooks.get(webhook).map(Subscription::body);
                if found != Some(body.as_str()) {
                    let message = format!("webhook {webhook} was changed by another request");
                    return Err(Conflict::Guard(message));
                }
            }
            CommitGuard::RegisteredAs {
                owner,
                workflow,
                hash,
            } => {
                let place = (owner.clone(), workflow.clone());
                let registered = self.registry.get(&place).map(|(registered, _)| registered);
                if registered != hash.as_ref() {
                    let message = format!("workflow {workflow} means something else");
                    return Err(Conflict::Guard(message));
                }
            }
            CommitGuard::MemoryKeysPresent {
                tenant,
                scope,
                memory_ref,
                keys,
            } => {
                let present = self.present(tenant, scope, memory_ref);
                let present: HashSet<&str> = present.map(|(_, row)| row.key.as_str()).collect();
                if !keys.iter().all(|key| present.contains(key.as_str())) {
                    return Err(Conflict::MemoryKeysMissing);
                }
            }
        }
        Ok(())
    }

    pub(super) fn live_in_scope(&self, owner: &Partition, scope: &str) -> Option<&RunRow> {
        self.runs.iter().find(|run| {
            run.tenant == owner.tenant
                && run.workspace == owner.workspace
                && run.scope.as_deref() == Some(scope)
                && !run.status.is_terminal()
        })
    }

    /// Call only after [`Self::validate`] succeeded.
    pub(super) fn apply(&mut self, commit: Commit) -> Committed {
        let mut committed = Committed::default();
        for data in CachedData::ALL {
            if data.is_changed_by(&commit) {
                self.raise_epoch(data);
            }
        }
        self.conversations.apply(&commit);
        for append in commit.appends {
            self.append(append);
        }
        for change in commit.timers {
            self.change_timer(change);
        }
        for change in commit.outbox {
            self.change_outbox(change, &mut committed);
        }
        for record in commit.idempotency {
            self.idempotency.insert(record.key.clone(), record);
        }
        for row in commit.interrupts {
            self.project_interrupt(row);
        }
        self.journal.extend(commit.memory);
        self.joins.extend(commit.joins);
        for change in commit.registry {
            self.change_registry(change);
        }
        for stored in commit.documents {
            self.documents.entry(stored.hash).or_insert(stored.document);
        }
        for change in commit.people {
            self.change_people(change);
        }
        if let Some(key) = commit.key {
            self.keys.insert(key.key_id.clone(), key);
        }
        for change in commit.webhooks {
            self.change_webhook(change);
        }
        for draft in &commit.audit {
            self.append_audit_entry(draft);
        }
        committed
    }

    fn append(&mut self, append: Append) {
        let log = self.streams.entry(append.stream).or_default();
        log.events.extend(append.events);
        if append.snapshot.is_some() {
            log.snapshot = append.snapshot;
        }
        if let Some(row) = append.run {
            self.project(row);
        }
    }

    fn project(&mut self, row: RunRow) {
        match self.run_places.get(&row.run_id) {
            Some(&place) => {
                let stored = &mut self.runs[place];
                stored.status = row.status;
                stored.ended_at = row.ended_at;
                stored.error_code = row.error_code;
            }
            None => {
                self.run_places.insert(row.run_id.clone(), self.runs.len());
                self.runs.push(row);
            }
        }
    }

    fn project_interrupt(&mut self, row: InterruptRow) {
        match self.interrupts.get_mut(&row.interrupt) {
            Some(stored) => {
                stored.deadline = row.deadline;
                stored.closed = row.closed;
                stored.body = row.body;
                stored.deadline = row.deadline;
                stored.priority = row.priority;
                stored.groups = row.groups;
            }
            None => self.interrupts.add(row.interrupt.clone(), row),
        }
    }

    fn change_registry(&mut self, change: RegistryChange) {
        match change {
            RegistryChange::Register {
                owner,
                definition,
                at,
            } => {
                let DefinitionRecord {
                    hash,
                    workflow,
                    document,
                } = definition;
                self.documents.entry(hash.clone()).or_insert(document);
                self.registry.insert((owner, workflow), (hash, at));
            }
            RegistryChange::Unregister { owner, workflow } => {
                self.registry.remove(&(owner, workflow));
            }
        }
    }
}
