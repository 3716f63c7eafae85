//! A store without a disk: maps behind one mutex, for tests and the simulator.
//!
//! It keeps every promise of the traits except the one about power failures. Cloned handles share
//! the data. [`MemoryStore::reopen`] simulates a process that crashed (or closed) and started
//! again; it finds everything that was committed.
//!
//! Invariant: the mutex is never held across an `await`, and a commit is validated as a whole
//! before its first change, so no reader sees part of a commit and no failed commit leaves part of
//! one.

mod access;
mod audit;
mod by_creation;
mod conversations;
mod journal;
mod outbox;
mod people;
mod processes;
mod reads;
mod schedules;
mod state;
mod storage_usage;
mod test_records;
mod timers;
mod webhooks;
mod work_failures;

#[cfg(test)]
mod tests;

use crate::commit::{Commit, Committed, NewEvent, SnapshotRecord};
use crate::fault::{Error, Fault};
use crate::read::{ListedRun, PageLimit, RunPosition, StoredEvent, StreamSlice};
use crate::{AuditDraft, EndedSession, Log, Maintenance, ReadLog, StorageUsage};
use async_trait::async_trait;
use state::State;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tandem_record::{RunId, Seq, SessionId, StreamId, TenantId, Timestamp};

/// A clone is another handle on the same open store.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    /// Belongs to this opening, not to the data.
    closed: Arc<AtomicBool>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// The same data as a new process would find it. Other handles do not change.
    pub fn reopen(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            closed: Arc::default(),
        }
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Fault> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Fault::permanent("closed", "the store is closed"));
        }
        Ok(self
            .state
            .lock()
            .expect("no code panics while holding the state"))
    }
}

#[async_trait]
impl Log for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, Error> {
        let mut state = self.state()?;
        commit.check()?;
        state.validate(&commit)?;
        Ok(state.apply(commit))
    }
}

#[async_trait]
impl ReadLog for MemoryStore {
    async fn event_page(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<StreamSlice, Fault> {
        let state = self.state()?;
        let Some(log) = state.streams.get(stream) else {
            return Ok(StreamSlice::default());
        };
        let first = after.map_or(0, |seq| seq.next().0);
        let (mut count, mut bytes) = (0, 0);
        let fits = |(_, event): &(u64, &NewEvent)| {
            let admitted = limit.admits(count, bytes, event.body.len());
            count += 1;
            bytes += event.body.len();
            admitted
        };
        let events = (first..)
            .zip(log.events.iter().skip(first as usize))
            .take_while(fits)
            .map(|(seq, event)| StoredEvent {
                seq: Seq(seq),
                at: event.at,
                body: event.body.clone(),
            })
            .collect();
        Ok(StreamSlice {
            events,
            head: log.head(),
        })
    }

    async fn snapshot(&self, stream: &StreamId) -> Result<Option<SnapshotRecord>, Fault> {
        let state = self.state()?;
        Ok(state
            .streams
            .get(stream)
            .and_then(|log| log.snapshot.clone()))
    }
}

#[async_trait]
impl Maintenance for MemoryStore {
    async fn ping(&self) -> Result<(), Fault> {
        self.state().map(drop)
    }

    async fn expire_idempotency(&self, before: Timestamp, limit: usize) -> Result<u64, Fault> {
        let mut state = self.state()?;
        let mut old: Vec<_> = state
            .idempotency
            .values()
            .filter(|record| record.recorded_at < before && record.session.is_none())
            .map(|record| (record.recorded_at, record.key.clone()))
            .collect();
        old.sort();
        old.truncate(limit);
        for (_, key) in &old {
            state.idempotency.remove(key);
        }
        Ok(old.len() as u64)
    }

    async fn ended_runs(
        &self,
        after: Option<(Timestamp, RunPosition)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<ListedRun>, Fault> {
        let state = self.state()?;
        let runs = (0..).map(RunPosition).zip(&state.runs);
        let mut ended: Vec<_> = runs
            .filter(|(_, run)| !state.tombstones.contains_key(&run.run_id))
            .filter_map(|(position, run)| Some(((run.ended_at?, position), run)))
            .filter(|(place, _)| place.0 < before && after.is_none_or(|after| *place > after))
            .collect();
        ended.sort_by_key(|(place, _)| *place);
        ended.truncate(limit);
        let listed = ended.into_iter().map(|((_, position), run)| ListedRun {
            position,
            row: run.clone(),
        });
        Ok(listed.collect())
    }

    async fn purge_run(
        &self,
        run: &RunId,
        tombstone: &str,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault> {
        self.state()?.purge_run(run, tombstone, audit.as_ref());
        Ok(())
    }

    async fn ended_sessions(
        &self,
        after: Option<(Timestamp, SessionId)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<EndedSession>, Fault> {
        Ok(self.state()?.ended_sessions(after, before, limit))
    }

    async fn purge_session(
        &self,
        session: &SessionId,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault> {
        self.state()?.purge_session(session, audit.as_ref());
        Ok(())
    }

    async fn storage_usage(&self, tenant: &TenantId) -> Result<StorageUsage, Fault> {
        Ok(self.state()?.storage_usage(tenant))
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
