//! Reading runs. Folds a run from snapshot and log if it is not cached; never waits for a writer.

use crate::codec;
use crate::conversation::Conversations;
use crate::definitions::flow_definition;
use crate::fold_stream::FoldedStream;
use crate::offload::in_place;
use crate::runtime::Runtime;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::flow_run::FlowRun;
use tandem_engine::machine::Machine;
use tandem_engine::run::{NextSteps, Run, State};
use tandem_record::{
    ArtifactView, DecisionPolicy, Event, InterruptId, Masking, NodeId, Partition, RecordedEvent,
    RunId, RunRequest, RunStatus, RunView, Sensitivity, Seq, StreamId, TenantId, TraceContext,
};
use tandem_store::{Fault, Page, PageLimit, RunFilter, RunListing, RunPosition, StoredRun};

/// A run as of `view.head`, with its definition and its sensitive values.
pub struct ObservedRun {
    pub view: RunView,
    pub definition: Arc<Definition>,
    pub sensitivity: Arc<Sensitivity>,
    pub outputs: Option<tandem_record::Object>,
    pub primary_node: Option<tandem_record::NodeId>,
    /// About how much memory the state takes.
    pub bytes: usize,
}

/// An open question with a preview of its answers.
pub struct NextStepsPreview {
    pub policy: DecisionPolicy,
    /// One for each given answer.
    pub next_steps: Vec<NextSteps>,
}

/// A page of a run's log.
pub struct EventPage {
    pub events: Vec<RecordedEvent>,
    pub head: Seq,
    /// Size of the events in the store.
    pub bytes: usize,
}

/// A run before its first event. A reader folds it event by event.
pub struct RunFold(pub Run);

impl Runtime {
    /// The row of a run, if the caller may see it.
    pub async fn find_run(
        &self,
        tenant: &TenantId,
        run: &RunId,
    ) -> Result<Option<StoredRun>, Fault> {
        self.store().run(tenant, run).await
    }

    /// The same without a tenant, for callers whose credential names the run.
    pub async fn find_any_run(&self, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        self.store().run_of_any_tenant(run).await
    }

    /// A run of the caller, folded up to its newest event.
    pub async fn observe(
        &self,
        tenant: &TenantId,
        run: &RunId,
    ) -> Result<Option<ObservedRun>, Fault> {
        match self.store().run(tenant, run).await? {
            Some(stored) => self.observe_stored(stored).await,
            None => Ok(None),
        }
    }

    /// The same when its row was read. Never older than the row.
    pub async fn observe_stored(&self, stored: StoredRun) -> Result<Option<ObservedRun>, Fault> {
        if stored.row.run_id.is_flow_run() {
            return self.observe_flow_run(&stored).await;
        }
        let folded = self.folded(stored).await?;
        Ok(folded.map(|run| observed(&run)))
    }

    /// A run the caller may see, as of one of its events. Costs one fold, from the snapshot if that
    /// is not newer.
    pub async fn observe_at(&self, stored: &StoredRun, at: Seq) -> Result<ObservedRun, Fault> {
        let definition = self.pinned_definition(stored).await?;
        let folded = self.fold_with(&stored.row.run_id, definition, Some(at));
        Ok(observed(&folded.await?.machine))
    }

    pub async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        artifact: &str,
    ) -> Result<Option<ArtifactView>, Fault> {
        let Some(stored) = self.store().run(tenant, run).await? else {
            return Ok(None);
        };
        let folded = self.folded(stored).await?;
        Ok(folded.and_then(|run| run.artifact(artifact)))
    }

    /// Who may decide an open question, and what would follow from each of these answers. `None`
    /// when it is no longer open.
    pub async fn preview_next_steps(
        &self,
        tenant: &TenantId,
        run: &RunId,
        (node, interrupt): (&NodeId, &InterruptId),
        actions: &[&str],
    ) -> Result<Option<NextStepsPreview>, Fault> {
        let Some(stored) = self.store().run(tenant, run).await? else {
            return Ok(None);
        };
        let folded = self.folded(stored).await?;
        Ok(folded.as_ref().and_then(|run| {
            Some(NextStepsPreview {
                policy: run.decision_policy(node, Some(interrupt))?,
                next_steps: actions
                    .iter()
                    .map(|a| run.predict_next_steps(node, a))
                    .collect(),
            })
        }))
    }

    /// Events of a run after a sequence. The caller has checked that it may see the run.
    pub async fn events(
        &self,
        run: &RunId,
        after: Option<Seq>,
        limit: usize,
    ) -> Result<Option<EventPage>, Fault> {
        let limit = PageLimit::of_events(limit);
        self.event_page(run, after, limit).await
    }

    /// The same up to the limit, but at least one event if there is one. A reader that has reached
    /// the page's head has read everything.
    pub async fn event_page(
        &self,
        run: &RunId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<Option<EventPage>, Fault> {
        let stream = StreamId::of_run(run);
        let slice = self.store().event_page(&stream, after, limit).await?;
        let Some(head) = slice.head else {
            return Ok(None);
        };
        let events = slice
            .events
            .iter()
            .map(codec::decode)
            .collect::<Result<_, _>>()?;
        let bytes = slice.events.iter().map(|event| event.body.len()).sum();
        Ok(Some(EventPage {
            events,
            head,
            bytes,
        }))
    }

    /// The definition a run is pinned to.
    pub async fn pinned_definition(&self, run: &StoredRun) -> Result<Arc<Definition>, Fault> {
        if run.row.run_id.is_flow_run() {
            return flow_definition(&run.row.workflow_id);
        }
        let store = &**self.store();
        self.inner
            .definitions
            .by_hash(store, &run.row.definition)
            .await
    }

    /// A run of a flow. Its state is not that of a workflow run.
    async fn observe_flow_run(&self, stored: &StoredRun) -> Result<Option<ObservedRun>, Fault> {
        let run = self.read_flow_run(&stored.row.run_id).await?;
        let Some(view) = run.as_ref().and_then(FlowRun::view) else {
            return Ok(None);
        };
        Ok(Some(ObservedRun {
            view,
            definition: self.pinned_definition(stored).await?,
            sensitivity: self.flow_sensitivity(run.as_ref()),
            bytes: run.as_ref().map_or(0, Machine::memory_bytes),
            outputs: run.and_then(|run| run.outputs().cloned()),
            primary_node: None,
        }))
    }

    /// The texts of a flow run are shown as its agent says (Z-202).
    fn flow_sensitivity(&self, run: Option<&FlowRun>) -> Arc<Sensitivity> {
        let start = run.and_then(FlowRun::start);
        let agents = self.conversations().map(Conversations::agents);
        let agent = start.and_then(|start| agents?.agent(&start.agent_id));
        let masking = agent.map(|agent| agent.redaction.masking());
        Arc::new(Sensitivity {
            texts: masking.filter(|masking| *masking != Masking::Passthrough),
            ..Sensitivity::default()
        })
    }

    /// Values that are masked wherever the run is shown.
    pub async fn sensitivity(&self, run: &StoredRun) -> Result<Arc<Sensitivity>, Fault> {
        if run.row.run_id.is_flow_run() {
            let flow_run = self.read_flow_run(&run.row.run_id).await?;
            return Ok(self.flow_sensitivity(flow_run.as_ref()));
        }
        if let Some(ended) = self.ended_run(run) {
            return Ok(ended.sensitivity());
        }
        let definition = self.pinned_definition(run).await?;
        let own = self.read_run_request(&run.row.run_id, |request| {
            definition.sensitivity_for(request)
        });
        let own = own.await?;
        Ok(own.unwrap_or_else(|| Arc::clone(&definition.sensitivity)))
    }

    /// A run to fold from the start, for readers that show every intermediate state.
    pub async fn run_fold(&self, run: &StoredRun) -> Result<RunFold, Fault> {
        let definition = self.pinned_definition(run).await?;
        Ok(RunFold(Run::new(run.row.run_id.clone(), definition)))
    }

    /// Where a run of the partition stands in listings.
    pub async fn run_position(
        &self,
        of: &Partition,
        run: &RunId,
    ) -> Result<Option<RunPosition>, Fault> {
        self.store().run_position(of, run).await
    }

    pub async fn list_runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<RunListing, Fault> {
        self.store().list_runs(tenant, filter, page).await
    }

    /// From the cache if it is as new as the row, else from the store.
    pub(crate) async fn folded(&self, stored: StoredRun) -> Result<Option<Run>, Fault> {
        let run = &stored.row.run_id;
        if self.is_past_retention(&stored) {
            return Ok(None);
        }
        if let Some(ended) = self.ended_run(&stored) {
            return Ok(Some(ended));
        }
        if !stored.row.status.is_terminal() {
            let slot = self.inner.runs.cache.slot(&StreamId::of_run(run));
            // A running command holds the slot; a read must not wait for it.
            if let Ok(held) = slot.try_lock()
                && let Some(cached) = held
                    .machine
                    .as_ref()
                    .filter(|r| r.head() >= Some(stored.head))
            {
                return Ok(Some(cached.clone()));
            }
        }
        let definition = self.pinned_definition(&stored).await?;
        let folded = self.fold_with(run, definition, None).await?.machine;
        // Without an event it was purged since its row was read.
        Ok(folded.head().is_some().then_some(folded))
    }

    /// The run if it ended lately, was not purged, and has no newer event.
    fn ended_run(&self, stored: &StoredRun) -> Option<Run> {
        if !stored.row.status.is_terminal() || stored.tombstone.is_some() {
            return None;
        }
        let stream = StreamId::of_run(&stored.row.run_id);
        let ended = self.inner.runs.ended.get(&stream);
        ended.filter(|run| run.head() == Some(stored.head))
    }

    /// The run folded from the store.
    pub(crate) async fn fold(&self, run: &RunId) -> Result<Option<FoldedStream<Run>>, Fault> {
        let stored = self.store().run_of_any_tenant(run).await?;
        let Some(stored) = stored.filter(|s| s.tombstone.is_none()) else {
            return Ok(None);
        };
        let definition = self.pinned_definition(&stored).await?;
        let folded = self.fold_with(run, definition, None).await?;
        // Without an event it was purged since its row was read.
        Ok(folded.machine.head().is_some().then_some(folded))
    }

    /// Folds up to and including `last`, or to the end.
    async fn fold_with(
        &self,
        run_id: &RunId,
        definition: Arc<Definition>,
        last: Option<Seq>,
    ) -> Result<FoldedStream<Run>, Fault> {
        let stream = StreamId::of_run(run_id);
        let fresh = Run::new(run_id.clone(), Arc::clone(&definition));
        let restore = |state: State| Run::restore(definition, state);
        self.fold_stream(&stream, fresh, restore, last).await
    }

    /// The trace that a run continues, for calls made on its behalf.
    pub(crate) async fn trace_of(&self, run: &RunId) -> Result<Option<TraceContext>, Fault> {
        let trace = self.read_run_request(run, |request| request.trace.clone());
        Ok(trace.await?.flatten())
    }

    /// A value from the request that created the run.
    async fn read_run_request<T>(
        &self,
        run: &RunId,
        read: impl Fn(&RunRequest) -> T,
    ) -> Result<Option<T>, Fault> {
        let slot = self.inner.runs.cache.slot(&StreamId::of_run(run));
        if let Ok(held) = slot.try_lock()
            && let Some(cached) = held.machine.as_ref()
        {
            return Ok(Some(read(cached.request())));
        }
        let first = self.events(run, None, 1).await?;
        let started = first.and_then(|page| page.events.into_iter().next());
        Ok(started.and_then(|recorded| match recorded.event {
            Event::RunStarted { request, .. } => Some(read(&request)),
            _ => None,
        }))
    }

    /// Load of the runtime, for metrics and back-pressure.
    pub fn load(&self) -> (usize, usize) {
        (self.inner.runs.cache.len(), self.inner.effects.under_way())
    }
}

impl RunFold {
    /// Folds the next event. Returns the run after it.
    pub fn step(&mut self, recorded: &RecordedEvent) -> RunView {
        self.0.evolve(recorded);
        self.0.view()
    }

    pub fn status(&self) -> RunStatus {
        self.0.status()
    }
}

fn observed(run: &Run) -> ObservedRun {
    let bytes = run.memory_bytes();
    in_place(bytes, || ObservedRun {
        view: run.view(),
        definition: Arc::clone(run.definition()),
        sensitivity: run.sensitivity(),
        outputs: run.outputs().cloned(),
        primary_node: run.primary_node().cloned(),
        bytes,
    })
}
