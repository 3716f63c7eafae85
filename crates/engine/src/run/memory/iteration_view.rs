//! What an iteration of a supervisor reads from memory: the scope as it was when the iteration
//! began. Writes of the run or its workers during an iteration are visible from the next iteration
//! on. So all decisions of an iteration use the same data, also after a wait or a restart.
//!
//! An iteration begins with the start of the supervisor and lasts until its next start. A retry
//! belongs to the same iteration.

use crate::definition::Definition;
use crate::node::{Kind, MemoryAction};
use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use tandem_record::{Event, RecordedEvent, RunId, RunRequest, Seq};

impl Definition {
    /// The supervisor whose loop contains the node.
    fn iteration_head(&self, ix: usize) -> Option<usize> {
        let heads = self.nodes.iter().enumerate();
        let mut around = heads.filter(|(_, node)| {
            let looped = node.repeats.as_ref().is_some_and(|l| l.body.contains(&ix));
            looped && matches!(node.kind, Kind::Supervisor(_))
        });
        around.next().map(|(head, _)| head)
    }
}

impl Run {
    /// The start of the iteration that a node belongs to.
    pub(in crate::run) fn iteration_start(&self, ix: usize) -> Option<Seq> {
        let head = self.def.iteration_head(ix)?;
        self.iteration_start_of(&self.def.nodes[head].id)
    }

    /// The same, if the version of the execution model has iteration views. In older versions, the
    /// writes of a child are visible as soon as its end is recorded.
    pub(in crate::run) fn iteration_view_start(&self, ix: usize) -> Option<Seq> {
        self.iteration_start(ix)
            .filter(|_| has_stateful_loop(self.request()))
    }

    /// The start of the iteration whose view a node reads. Writes use the current scope.
    pub(in crate::run) fn iteration_read_start(&self, ix: usize) -> Option<Seq> {
        let writes = match &self.def.nodes[ix].kind {
            Kind::Memory(config) => matches!(config.action, MemoryAction::Put { .. }),
            _ => false,
        };
        self.iteration_view_start(ix).filter(|_| !writes)
    }
}

impl DecisionDraft<'_> {
    /// Children whose end this decision recorded, if they are visible to the reading node.
    pub(in crate::run) fn children_joined_now(&self) -> Vec<RunId> {
        if self.is_replaying() {
            return Vec::new();
        }
        let ended = self.run.children_ended_since(self.first_own_seq());
        let visible = ended.filter(|(_, at)| self.is_visible(*at));
        visible.map(|(child, _)| child.clone()).collect()
    }

    /// Finds all memory reads of the log that this decision replays.
    pub(in crate::run) fn plan_replay_reads(&mut self, log: &[RecordedEvent]) {
        self.memory.replay_reads = memory_reads_in_log(self, log);
    }

    /// Whether the reading node sees the result of an event of this decision.
    pub(in crate::run) fn is_visible(&self, at: Seq) -> bool {
        self.memory.iteration_view.is_none_or(|began| at < began)
    }
}

/// The version of the execution model that numbers turns and gives every turn a view of its own.
const STATEFUL_LOOP_SINCE: u32 = 5;

/// Whether a run keeps to a version with numbered turns.
pub(in crate::run) fn has_stateful_loop(request: &RunRequest) -> bool {
    let version = request.execution_model;
    version.is_none_or(|version| version >= STATEFUL_LOOP_SINCE)
}

/// All memory reads of a log, each with the event before which it reads, so that they can be looked
/// up at once.
fn memory_reads_in_log(draft: &DecisionDraft<'_>, log: &[RecordedEvent]) -> Vec<(usize, Seq)> {
    let def = &draft.run.def;
    let mut began = vec![None; def.nodes.len()];
    let mut reads = Vec::new();
    let first = log.first().map(|recorded| &recorded.event);
    let has_views = match first {
        Some(Event::RunStarted { request, .. }) => has_stateful_loop(request),
        _ => true,
    };
    for recorded in log {
        let Event::NodeStarted { node, attempt, .. } = &recorded.event else {
            continue;
        };
        let Some(ix) = def.index(node) else {
            continue;
        };
        match &def.nodes[ix].kind {
            Kind::Supervisor(_) if *attempt == 0 => began[ix] = Some(recorded.seq),
            Kind::Memory(_) if draft.is_repeatable(ix) => {
                let head = def.iteration_head(ix).filter(|_| has_views);
                let view = head.and_then(|head| began[head]);
                reads.push((ix, view.unwrap_or(recorded.seq)));
            }
            _ => {}
        }
    }
    reads
}
