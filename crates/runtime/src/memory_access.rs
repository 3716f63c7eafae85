//! Memory between the engine and the store: which writes a run sees, and which writes a decision
//! adds. The journal is a projection of the runs' logs. What a run sees is a query, never a copy.

use crate::codec;
use crate::definitions::DecisionLookups;
use crate::offload::INLINE_BYTES;
use crate::runtime::Runtime;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_engine::NOTE_PREFIX;
use tandem_engine::run::{Decision, MemoryNeed, MemoryQueryKind, MemoryRead, MemoryResult};
use tandem_record::{
    Event, MemoryEntry, MemoryOrigin, RunId, RunRequest, Seq, StreamId, TenantId, Timestamp,
};
use tandem_store::{
    Commit, CommitGuard, Fault, MemoryJoin, MemoryQuery, MemoryRow, MemorySegment, MemoryView,
    StoredEvent, StoredRun,
};

/// Limit of runs whose writes one reader may see. A larger run tree is not searched.
const MAX_SEGMENTS: usize = 10_000;
/// Entries counted under one name before a write is refused.
const COUNT_LIMIT: u64 = 10_000;

/// What a run can read from memory at one of its events.
pub struct RunMemory {
    pub at: Seq,
    /// Newest first.
    pub entries: Vec<MemoryEntry>,
}

/// Adds the journal rows of a decision's own events.
pub(crate) fn project(decision: &Decision, commit: &mut Commit) {
    let run = &decision.after;
    let Some(first) = decision.events.first() else {
        return;
    };
    let floor = first.seq.max(run.fork_point());
    let request = run.request();
    if request.is_replay() {
        // A replay repeats the writes of its source and reads them there.
        return;
    }
    let tenant = &request.owner.tenant;
    let origin = request.memory_origin();
    let row = |seq: Seq, memory_ref: &str, key: &str, body: Option<String>| MemoryRow {
        tenant: tenant.clone(),
        scope: origin.scope.clone(),
        memory_ref: memory_ref.to_owned(),
        key: key.to_owned(),
        run: run.id().clone(),
        seq,
        body,
    };
    let mut collapsed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for recorded in decision.events.iter().filter(|r| r.seq >= floor) {
        match &recorded.event {
            Event::MemoryWritten { entry, .. } => {
                let body = serde_json::to_string(entry).expect("entries are plain data");
                let written = row(recorded.seq, &entry.memory_ref, &entry.key, Some(body));
                commit.memory.push(written);
            }
            Event::MemoryDeleted {
                memory_ref,
                forgotten,
                ..
            } => commit
                .memory
                .push(row(recorded.seq, memory_ref, forgotten, None)),
            Event::MemoryCompacted {
                output, sources, ..
            } => {
                let name = output.memory_ref.as_str();
                let body = serde_json::to_string(output).expect("entries are plain data");
                let written = row(recorded.seq, name, &output.key, Some(body));
                commit.memory.push(written);
                let gone = sources.iter().map(|id| row(recorded.seq, name, id, None));
                commit.memory.extend(gone);
                let of_name = collapsed.entry(name).or_default();
                of_name.extend(sources.iter().cloned());
            }
            _ => {}
        }
    }
    // The guard fails if another run removed them in the meantime, by compaction or otherwise.
    commit
        .guards
        .extend(
            collapsed
                .into_iter()
                .map(|(memory_ref, keys)| CommitGuard::MemoryKeysPresent {
                    tenant: tenant.clone(),
                    scope: origin.scope.clone(),
                    memory_ref: memory_ref.to_owned(),
                    keys,
                }),
        );
    let ended = run.children_ended_since(floor);
    commit.joins.extend(ended.map(|(child, seq)| MemoryJoin {
        run: run.id().clone(),
        seq,
        child: child.clone(),
    }));
}

/// The memory origin of a run, from the text of its first event.
pub fn origin_in_event(body: &str) -> Option<MemoryOrigin> {
    let first = StoredEvent {
        seq: Seq(0),
        at: Timestamp::default(),
        body: body.to_owned(),
    };
    match codec::decode(&first).ok()?.event {
        Event::RunStarted { request, .. } => Some(request.memory_origin()),
        _ => None,
    }
}

/// The same, from the tombstone of a purged run.
pub fn origin_in_tombstone(tombstone: &str) -> Option<MemoryOrigin> {
    let left: Value = serde_json::from_str(tombstone).ok()?;
    serde_json::from_value(left["memory"].clone()).ok()
}

impl Runtime {
    /// Looks up the memory that a decision needs.
    pub(crate) async fn look_up_memory(
        &self,
        tenant: &TenantId,
        need: MemoryNeed,
        lookups: &mut DecisionLookups,
    ) -> Result<(), Fault> {
        // Reads at the same position share one view.
        let mut view: Option<(Option<Seq>, MemoryView)> = None;
        for read in need.reads {
            let result = match &read.what {
                MemoryQueryKind::Count => {
                    let (scope, name) = (&need.origin.scope, &read.memory_ref);
                    let (store, now) = (self.store(), self.clock().now());
                    let count = store.memory_count(tenant, scope, name, now, COUNT_LIMIT);
                    MemoryResult::Count(count.await?)
                }
                MemoryQueryKind::Key(_) | MemoryQueryKind::All | MemoryQueryKind::Notes { .. } => {
                    let (_, view) = match view.take().filter(|(below, _)| *below == read.below) {
                        Some(cached) => view.insert(cached),
                        None => {
                            let (run, origin) = (&need.run, &need.origin);
                            let found = self
                                .memory_view(tenant, run, origin, read.below, &read.joined)
                                .await?;
                            view.insert((read.below, found))
                        }
                    };
                    self.read_memory(tenant, view, &read).await?
                }
            };
            lookups.memory.insert(read, result);
        }
        Ok(())
    }

    async fn read_memory(
        &self,
        tenant: &TenantId,
        view: &MemoryView,
        read: &MemoryRead,
    ) -> Result<MemoryResult, Fault> {
        let name = &read.memory_ref;
        let key = match &read.what {
            MemoryQueryKind::Notes { above, limit } => {
                let notes =
                    self.store()
                        .non_expiring_memory(view, name, NOTE_PREFIX, *above, *limit);
                let (held, rows) = notes.await?;
                let oldest = self.decode_entries(tenant, rows).await?;
                return Ok(MemoryResult::Notes { held, oldest });
            }
            MemoryQueryKind::Key(key) => Some(key.clone()),
            MemoryQueryKind::All | MemoryQueryKind::Count => None,
        };
        let query = MemoryQuery {
            memory_ref: Some(name.clone()),
            key,
        };
        let rows = self.store().memory_entries(view, &query).await?;
        let entries = self.decode_entries(tenant, rows).await?;
        Ok(MemoryResult::Entries(entries))
    }

    /// Reads stored entries. Many bytes of them are read off the threads that serve everybody.
    async fn decode_entries(
        &self,
        tenant: &TenantId,
        rows: Vec<MemoryRow>,
    ) -> Result<Vec<MemoryEntry>, Fault> {
        let bodies = rows.iter().filter_map(|row| row.body.as_deref());
        if bodies.map(str::len).sum::<usize>() <= INLINE_BYTES {
            return entries(&rows);
        }
        let offload = &self.inner.decision_work;
        let decoded = async {
            let permit = offload.acquire(Some(tenant)).await;
            permit.run(move || entries(&rows)).await
        };
        self.with_deadline(decoded).await?
    }

    /// What a run sees before one of its events, or now: its scope at its start, what its ancestors
    /// had seen, its own writes, and those of children whose end it has seen.
    pub(crate) async fn memory_view(
        &self,
        tenant: &TenantId,
        run: &RunId,
        origin: &MemoryOrigin,
        below: Option<Seq>,
        joined: &[RunId],
    ) -> Result<MemoryView, Fault> {
        let mut view = MemoryView {
            tenant: tenant.clone(),
            scope: origin.scope.clone(),
            start: origin.start,
            segments: Vec::new(),
        };
        for child in joined {
            self.add_descendants(child, &mut view).await?;
        }
        let (mut run, mut origin, mut below) = (run.clone(), origin.clone(), below);
        let mut applies_deletions = false;
        loop {
            view.add(&run, below, applies_deletions)?;
            for child in self.store().memory_joins(&run, below).await? {
                self.add_descendants(&child, &mut view).await?;
            }
            let Some(base) = origin.base.take() else {
                return Ok(view);
            };
            // A fork continues as its source: entries that the source deleted later stay visible.
            // For a copied event, the fork gives the same result as the source.
            below = match below {
                Some(asked) if base.fork => Some(asked.min(base.below)),
                _ => Some(base.below),
            };
            applies_deletions |= !base.fork;
            run = base.run;
            origin = self.memory_origin(&run).await?;
        }
    }

    /// Adds everything a child wrote, and its own children as far as it saw their ends.
    async fn add_descendants(&self, child: &RunId, view: &mut MemoryView) -> Result<(), Fault> {
        let mut waiting = vec![child.clone()];
        while let Some(run) = waiting.pop() {
            view.add(&run, None, true)?;
            waiting.extend(self.store().memory_joins(&run, None).await?);
        }
        Ok(())
    }

    /// The memory origin of a stored run, also after its log was purged.
    async fn memory_origin(&self, run: &RunId) -> Result<MemoryOrigin, Fault> {
        let lost = |why: &str| {
            let message = format!("what run {run} remembered is lost: {why}");
            Fault::permanent("memory_lost", message)
        };
        let stored = self.store().run_of_any_tenant(run).await?;
        let stored = stored.ok_or_else(|| lost("there is no such run"))?;
        if let Some(tombstone) = &stored.tombstone {
            return origin_in_tombstone(tombstone)
                .ok_or_else(|| lost("its tombstone does not say"));
        }
        let request = self.first_request(run).await?;
        let request = request.ok_or_else(|| lost("it has no log"))?;
        Ok(request.memory_origin())
    }

    /// The original request of a run, from the first event of its log.
    pub(crate) async fn first_request(&self, run: &RunId) -> Result<Option<RunRequest>, Fault> {
        let slice = self.store().events(&StreamId::of_run(run), None, 1).await?;
        let first = slice.events.first().map(codec::decode).transpose()?;
        Ok(first.and_then(|recorded| match recorded.event {
            Event::RunStarted { request, .. } => Some(*request),
            _ => None,
        }))
    }

    /// The memory of a run: what a fork from `at` would see, or what the run sees now. The caller
    /// has checked that it may see the run. `scope` selects another scope of the run's tenant or
    /// workspace, as it was when the run started.
    pub async fn run_memory(
        &self,
        stored: &StoredRun,
        at: Option<Seq>,
        scope: Option<&str>,
    ) -> Result<RunMemory, Fault> {
        let run = &stored.row.run_id;
        let mut origin = self.memory_origin(run).await?;
        if let Some(scope) = scope {
            origin.scope = MemoryOrigin::scope_of(stored.row.workspace.as_ref(), Some(scope));
        }
        let tenant = &stored.row.tenant;
        let view = self.memory_view(tenant, run, &origin, at, &[]).await?;
        let rows = self
            .store()
            .memory_entries(&view, &MemoryQuery::default())
            .await?;
        let now = match at {
            Some(at) => self.time_of(run, at).await?,
            None => None,
        };
        let now = now.unwrap_or_else(|| self.clock().now());
        let mut entries = self.decode_entries(tenant, rows).await?;
        entries.retain(|entry| !entry.is_expired(now));
        entries.reverse();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.written_at));
        Ok(RunMemory {
            at: at.unwrap_or(stored.head.next()),
            entries,
        })
    }

    async fn time_of(&self, run: &RunId, at: Seq) -> Result<Option<Timestamp>, Fault> {
        let before = at.0.checked_sub(1).map(Seq);
        let stream = StreamId::of_run(run);
        let slice = self.store().events(&stream, before, 1).await?;
        Ok(slice.events.first().map(|event| event.at))
    }
}

trait AddSegment {
    fn add(
        &mut self,
        run: &RunId,
        below: Option<Seq>,
        applies_deletions: bool,
    ) -> Result<(), Fault>;
}

impl AddSegment for MemoryView {
    fn add(
        &mut self,
        run: &RunId,
        below: Option<Seq>,
        applies_deletions: bool,
    ) -> Result<(), Fault> {
        if self.segments.len() >= MAX_SEGMENTS {
            let message = format!("more than {MAX_SEGMENTS} runs share one memory");
            return Err(Fault::permanent("memory_too_wide", message));
        }
        self.segments.push(MemorySegment {
            run: run.clone(),
            below,
            applies_deletions,
        });
        Ok(())
    }
}

fn entries(rows: &[MemoryRow]) -> Result<Vec<MemoryEntry>, Fault> {
    let bodies = rows.iter().filter_map(|row| row.body.as_deref());
    bodies
        .map(|body| {
            serde_json::from_str(body).map_err(|e| {
                Fault::permanent("corrupt", format!("a memory entry is unreadable: {e}"))
            })
        })
        .collect()
}
