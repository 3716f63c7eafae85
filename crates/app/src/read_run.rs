//! Reading one run: its state, its log, its artifacts and its memory.

use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::follow::PAGE;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::{ArtifactView, RecordedEvent, RunId, RunStatus, Sensitivity, Seq, StreamId};
use tandem_runtime::{Definition, Fault, ObservedRun, PageLimit, RunFold, RunMemory, StoredRun};
use tokio::sync::watch;

/// Maximum bytes of a log that are read at once, unless a single event is larger.
const MAX_LOG_BYTES: usize = 8 * 1024 * 1024;

/// How far a page of a log reaches, and how the run stood there. The status is never newer than the
/// events of the page.
pub struct LogPage {
    pub last_seq: Seq,
    pub status: RunStatus,
}

impl App {
    /// A run the caller may see, folded up to its newest event.
    pub async fn observe_run(
        &self,
        caller: &Identity,
        run: &RunId,
    ) -> Result<ObservedRun, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let stored = self.find_run(caller, run).await?;
        let observed = self.runtime().observe_stored(stored).await?;
        observed.ok_or(AppError::NotFound(ResourceKind::Run))
    }

    /// A run the caller may see, as of one of its events.
    pub async fn observe_run_at(&self, run: &StoredRun, at: Seq) -> Result<ObservedRun, AppError> {
        check_within(run, at)?;
        Ok(self.runtime().observe_at(run, at).await?)
    }

    /// The status of children that the run has not recorded as ended. A parent learns of the end of a
    /// child late.
    pub async fn open_child_statuses(
        &self,
        caller: &Identity,
        observed: &ObservedRun,
    ) -> Result<Vec<(RunId, RunStatus)>, AppError> {
        let mut children = Vec::new();
        let unsettled = observed.view.children.iter();
        for child in unsettled.filter(|child| !child.status.is_terminal()) {
            let found = self
                .runtime()
                .find_run(&caller.tenant, &child.run_id)
                .await?;
            if let Some(found) = found {
                children.push((child.run_id.clone(), found.row.status));
            }
        }
        Ok(children)
    }

    pub async fn read_artifact(
        &self,
        caller: &Identity,
        run: &RunId,
        artifact: &str,
    ) -> Result<ArtifactView, AppError> {
        caller.require_scope(Scope::ArtifactsRead)?;
        self.find_run(caller, run).await?;
        let runtime = self.runtime();
        let found = runtime.artifact(&caller.tenant, run, artifact).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Artifact))
    }

    /// The memory of a run the caller may see: as a fork from event `at` would read it, or as it is now.
    pub async fn read_memory(
        &self,
        run: &StoredRun,
        at: Option<Seq>,
        scope: Option<&str>,
    ) -> Result<RunMemory, AppError> {
        if let Some(at) = at {
            check_within(run, at)?;
        }
        Ok(self.runtime().run_memory(run, at, scope).await?)
    }

    /// The memory that the event after `at` would read; `None` if it is past retention.
    pub async fn read_memory_after(
        &self,
        run: &StoredRun,
        at: Seq,
    ) -> Result<Option<RunMemory>, AppError> {
        match self.runtime().run_memory(run, Some(at.next()), None).await {
            Ok(memory) => Ok(Some(memory)),
            // The run can still be read; only its memory is past retention.
            Err(fault) if fault.code == "memory_lost" => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Passes on everything after the cursor that can be read at once, up to the head of the row.
    pub async fn read_log_page(
        &self,
        run: &StoredRun,
        after: Option<Seq>,
        mut take: impl FnMut(RecordedEvent),
    ) -> Result<LogPage, AppError> {
        let mut last = None;
        self.visit_log(&run.row.run_id, after, run.head, |recorded| {
            last = Some(recorded.seq);
            take(recorded);
        })
        .await?;
        let cut = last.filter(|last| *last < run.head);
        // The status belongs to the row's head. At an earlier event the run had not ended.
        let status = match run.row.status {
            ended if cut.is_some() && ended.is_terminal() => RunStatus::Running,
            status => status,
        };
        Ok(LogPage {
            last_seq: cut.unwrap_or(run.head),
            status,
        })
    }

    /// The whole log of a run the caller may see, up to `head`.
    pub async fn read_whole_log(
        &self,
        run: &RunId,
        head: Seq,
    ) -> Result<Vec<RecordedEvent>, AppError> {
        let log = self.read_log(run, None, head).await?;
        if log.last().is_none_or(|last| last.seq < head) {
            return Err(AppError::LogTooLarge);
        }
        Ok(log)
    }

    /// Events of a run the caller may see, after the cursor up to `head`, as many as can be read at once.
    pub async fn read_log(
        &self,
        run: &RunId,
        after: Option<Seq>,
        head: Seq,
    ) -> Result<Vec<RecordedEvent>, AppError> {
        let mut events = Vec::new();
        self.visit_log(run, after, head, |recorded| events.push(recorded))
            .await?;
        Ok(events)
    }

    async fn visit_log(
        &self,
        run: &RunId,
        mut after: Option<Seq>,
        head: Seq,
        mut take: impl FnMut(RecordedEvent),
    ) -> Result<(), AppError> {
        let mut is_first = true;
        let mut budget_bytes = MAX_LOG_BYTES;
        while after < Some(head) && budget_bytes > 0 {
            let limit = PageLimit {
                bytes: PAGE.bytes.min(budget_bytes),
                ..PAGE
            };
            let Some(page) = self.runtime().event_page(run, after, limit).await? else {
                break;
            };
            if page.bytes > budget_bytes && !is_first {
                break;
            }
            budget_bytes = budget_bytes.saturating_sub(page.bytes);
            let Some(last) = page.events.last() else {
                break;
            };
            after = Some(last.seq);
            is_first = false;
            let in_range = page.events.into_iter().filter(|e| e.seq <= head);
            in_range.for_each(&mut take);
        }
        Ok(())
    }

    /// The newest events up to `head` of a run the caller may see, oldest first. They are fewer than
    /// `limit.events` if those are too many bytes; the newest event is always among them.
    pub async fn read_newest_events(
        &self,
        run: &RunId,
        head: Seq,
        limit: PageLimit,
    ) -> Result<Vec<RecordedEvent>, AppError> {
        if let Some(all) = self.read_last_events(run, head, limit).await? {
            return Ok(all);
        }
        // A log is read forwards only, so the start is moved back as long as the rest fits.
        let (mut events, mut newest) = (1, Vec::new());
        while events < limit.events {
            let limit = PageLimit { events, ..limit };
            match self.read_last_events(run, head, limit).await? {
                Some(more) => newest = more,
                None => break,
            }
            events *= 2;
        }
        Ok(newest)
    }

    /// The last `limit.events` events up to `head`; `None` if they are too many bytes. One event never is.
    async fn read_last_events(
        &self,
        run: &RunId,
        head: Seq,
        limit: PageLimit,
    ) -> Result<Option<Vec<RecordedEvent>>, AppError> {
        let omitted = (head.0 + 1).saturating_sub(limit.events as u64);
        let after = omitted.checked_sub(1).map(Seq);
        let page = self.runtime().event_page(run, after, limit).await?;
        let mut events = page.map(|page| page.events).unwrap_or_default();
        let is_complete = events.last().is_none_or(|last| last.seq >= head);
        events.retain(|event| event.seq <= head);
        Ok(is_complete.then_some(events))
    }

    /// One page of the log of a run the caller may see.
    pub async fn read_events(
        &self,
        run: &StoredRun,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<Vec<RecordedEvent>, AppError> {
        let page = self.runtime().event_page(&run.row.run_id, after, limit);
        let page = page.await?;
        Ok(page.map(|page| page.events).unwrap_or_default())
    }

    /// Values that are masked wherever the run is shown.
    pub async fn sensitivity(&self, run: &StoredRun) -> Result<Arc<Sensitivity>, Fault> {
        self.runtime().sensitivity(run).await
    }

    /// A run to fold from the start, for readers that show every intermediate state.
    pub async fn run_fold(&self, run: &StoredRun) -> Result<RunFold, Fault> {
        self.runtime().run_fold(run).await
    }

    /// The definition a run is pinned to.
    pub async fn pinned_definition(&self, run: &StoredRun) -> Result<Arc<Definition>, Fault> {
        self.runtime().pinned_definition(run).await
    }

    /// Notifies that a run has new events.
    pub fn listen_run(&self, run: &RunId) -> watch::Receiver<u64> {
        self.listen_stream(&StreamId::of_run(run))
    }

    /// Notifies that a stream has new events.
    pub fn listen_stream(&self, stream: &StreamId) -> watch::Receiver<u64> {
        self.runtime().bell().listen(stream)
    }

    /// Notifies that questions of some run changed.
    pub fn listen_questions(&self) -> watch::Receiver<u64> {
        self.runtime().bell().listen_questions()
    }

    /// Notifies that some run has new events.
    pub fn listen_runs(&self) -> watch::Receiver<u64> {
        self.runtime().bell().listen_any()
    }
}

fn check_within(run: &StoredRun, at: Seq) -> Result<(), AppError> {
    match at > run.head {
        true => Err(AppError::BeyondEnd {
            seq: at,
            last: run.head,
        }),
        false => Ok(()),
    }
}
